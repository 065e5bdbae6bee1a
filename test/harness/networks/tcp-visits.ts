/**
 * A program for network namespaces: `tcp-visits.ts ADDRESS PORT COUNT INTERVAL_MS` opens so many connections to an echo
 * server, one per interval. For each it prints a line of JSON: `{"ms"}` until the echo was complete, or `{"problem"}`.
 */
import { once } from "node:events";
import { connect } from "node:net";

const [, , host = "", port = "0", count = "0", intervalMs = "0"] = process.argv;
let started = 0;

async function visit(): Promise<void> {
  const startedAt = performance.now();
  const text = `visit ${started}`;
  try {
    const socket = connect({ host, port: Number(port) });
    await once(socket, "connect");
    socket.end(text);
    let answer = "";
    for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
    if (answer !== text) throw new Error(`answered with "${answer}"`);
    console.log(JSON.stringify({ ms: performance.now() - startedAt }));
  } catch (error) {
    console.log(JSON.stringify({ problem: String(error) }));
  }
}

const timer = setInterval(() => {
  started += 1;
  void visit();
  if (started === Number(count)) clearInterval(timer);
}, Number(intervalMs));
