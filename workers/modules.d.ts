/** What the bundler makes of files that are not code. */
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

declare module "*.html" {
  const text: string;
  export default text;
}
