"""Writers over the result records: one module a format. They compute no figure of their own."""
