/** A public URL for a function: no port is open. */
import { expose } from "underpass";

const tunnel = await expose({
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/") return new Response(`Hello from ${request.url}\n`);
    if (pathname === "/echo" && request.method === "POST") return new Response(request.body);
    return new Response("Not found\n", { status: 404 });
  },
});
tunnel.events.on("request", ({ method, path, status }) => console.log(method, path, status));
console.log(tunnel.url);

// Without the tunnel, nothing keeps the process running.
process.once("SIGINT", () => void tunnel.close());
process.once("SIGTERM", () => void tunnel.close());
