"""Names of kernels as the libraries of a PyTorch job on Hopper give them."""

from __future__ import annotations

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

_LAMBDA = "{lambda(c10::BFloat16)#1}"


def _vectorized(functor: str, pointers: int) -> str:
    array = f"std::array<char*, {pointers}ul>"
    return f"void at::native::vectorized_elementwise_kernel<4, {functor}, {array} >(int, {functor}, {array})"


def _strided(functor: str) -> str:
    inner = f"at::native::gpu_kernel_impl_nocast<{functor} >(at::TensorIteratorBase&, {functor} const&)::{{lambda(int)#1}}"
    return f"void at::native::elementwise_kernel<128, 4, {inner}>(int, {inner})"


_MUL = "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >"
_ADD = "at::native::CUDAFunctor_add<c10::BFloat16>"
_NEG = f"at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#2}}::operator()() const::{{lambda()#9}}::operator()() const::{_LAMBDA}"
_SILU = (
    "at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#6}"
    f"::operator()() const::{_LAMBDA}"
)
_SILU_BACKWARD = (
    "at::native::(anonymous namespace)::silu_backward_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#6}"
    "::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}"
)
_COPY = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::"
    f"{_LAMBDA}"
)
_OPAQUE = "at::native::(anonymous namespace)::OpaqueType<2u>"
_MANY = "at::native::(anonymous namespace)"

MUL = _vectorized(_MUL, 3)
MUL_STRIDED = _strided(_MUL)
MUL_BY_NUMBER = _vectorized(
    "at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >", 2
)
ADD = _vectorized(_ADD, 3)
NEG_STRIDED = _strided(_NEG)
SILU = _vectorized(_SILU, 2)
SILU_BACKWARD = _vectorized(_SILU_BACKWARD, 3)
COPY_STRIDED = _strided(_COPY)
FILL = _vectorized("at::native::FillFunctor<c10::BFloat16>", 1)
FILL_FP32 = _vectorized("at::native::FillFunctor<float>", 1)
TO_FP32 = _vectorized("at::native::float_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}", 2)
TO_BF16 = _vectorized("at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2)
CLAMP = _vectorized(f"{_MANY}::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar)::{{lambda(float)#1}}", 2)
RECIPROCAL = _vectorized("at::native::reciprocal_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2)
ADD_NUMBER = _vectorized("at::native::CUDAFunctorOnSelf_add<float>", 2)
CAT = (
    f"void {_MANY}::CatArrayBatchedCopy_aligned16_contig<{_OPAQUE}, unsigned int, 4, 64, 64>({_OPAQUE}*, "
    f"{_MANY}::CatArrInputTensorMetadata<{_OPAQUE}, unsigned int, 64, 64>, {_MANY}::TensorSizeStride<unsigned int, 4u>, int, unsigned int)"
)
RMS_NORM = (
    f"void {_MANY}::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, "
    "c10::BFloat16 const*, float*, float*, c10::BFloat16*)"
)
RMS_NORM_BACKWARD = (
    f"void {_MANY}::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, true>(c10::BFloat16 const*, c10::BFloat16 const*, "
    "float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)"
)
RMS_NORM_WEIGHT = (
    f"void {_MANY}::GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16, float, 32u, 32u, 256u, true, true, false, true>(long, long, "
    "c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, c10::BFloat16*)"
)
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
LOG_SOFTMAX = f"void {_MANY}::cunn_SoftMaxForward<4, float, float, float, {_MANY}::LogSoftMaxForwardEpilogue>(float*, float const*, int)"
LOG_SOFTMAX_BACKWARD = f"void {_MANY}::cunn_SoftMaxBackward<4, float, float, float, {_MANY}::LogSoftMaxBackwardEpilogue>(float*, float const*, float const*, long)"
NLL_LOSS = f"void {_MANY}::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float*, long*, float*, bool, long, long, long, long)"
NLL_LOSS_BACKWARD = (
    f"void {_MANY}::nll_loss_backward_reduce_cuda_kernel_2d<float, long>(float*, float*, long*, float*, float*, bool, int, int, long, long)"
)
FLASH_DOT = "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, pytorch_flash::Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_bwd_params)"
FLASH_CONVERT = "void pytorch_flash::flash_bwd_convert_dq_kernel<pytorch_flash::Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_bwd_params, int)"
_SUM = "at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float, c10::BFloat16>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, c10::BFloat16, 4>"
SUM = f"void at::native::reduce_kernel<128, 4, {_SUM} >({_SUM})"
_NORM = "at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float>, unsigned int, float, 4>"
NORM_OF_NORMS = f"void at::native::reduce_kernel<512, 1, {_NORM} >({_NORM})"
RADIX_SORT = "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, long, unsigned long long>::Policy900, false, long, long, unsigned long long>(long*, long const*, int)"
RADIX_HISTOGRAM = "void cub::DeviceRadixSortHistogramKernel<cub::DeviceRadixSortPolicy<long, long, unsigned long long>::Policy900, false, long, unsigned long long>(unsigned long long*, long const*)"
EMBEDDING_PARTS = "void at::native::(anonymous namespace)::compute_grad_weight<c10::BFloat16, long>(long const*, c10::BFloat16 const*, long const*, long, long, long const*, long const*, float*, long)"
EMBEDDING_SUM = "void at::native::(anonymous namespace)::sum_and_scatter<c10::BFloat16, long>(long const*, c10::BFloat16*, long, long const*, long const*, float const*, long const*, long, long)"


def _multi_tensor(metadata: str, functor: str) -> str:
    return f"void {_MANY}::multi_tensor_apply_kernel<{metadata}, {functor} >({metadata}, {functor})"


ADAMW = _multi_tensor(
    f"{_MANY}::FusedOptimizerTensorListMetadata<4>", f"{_MANY}::FusedAdamMathFunctor<c10::BFloat16, float, 4, ({_MANY}::ADAM_MODE)1, false>"
)
LIST_NORM = _multi_tensor(f"{_MANY}::TensorListMetadata<1>", f"{_MANY}::LpNormFunctor<c10::BFloat16, ({_MANY}::NormType)1, float, 1, 1, 0>")
LIST_MUL = _multi_tensor(f"{_MANY}::TensorListMetadata<1>", f"{_MANY}::BinaryOpScalarTensorFunctor<c10::BFloat16, 1, 1, 0>")
NORM_CLEANUP = f"void {_MANY}::lpnorm_cleanup<c10::BFloat16, ({_MANY}::NormType)1, float>(float const*, {_MANY}::TensorListAddresses, int)"
