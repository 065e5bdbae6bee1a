/**
 * The functions of `node:http` that the programs on Node.js use. An `import` of that module reads all of its exports, among
 * them `WebSocket`, for which Node.js then loads its own undici: 13 MiB in each process.
 */
export const { createServer, request, STATUS_CODES } = process.getBuiltinModule("node:http");
