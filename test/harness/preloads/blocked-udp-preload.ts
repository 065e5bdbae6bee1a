/** Loaded before a program: no UDP socket of it can connect to the port `BLOCKED_UDP_PORT`, as behind a firewall. */
import { Socket } from "node:dgram";

const { connect } = Socket.prototype as { connect: (this: Socket, ...args: unknown[]) => void };
const connectUnlessBlocked = function (this: Socket, ...args: unknown[]): void {
  const callback = args.at(-1);
  if (args[0] === Number(process.env.BLOCKED_UDP_PORT) && typeof callback === "function")
    process.nextTick(callback, new Error("blocked"));
  else connect.apply(this, args);
};
Socket.prototype.connect = connectUnlessBlocked;
