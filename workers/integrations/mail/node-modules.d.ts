/** Declares the parts of Node.js and nodemailer that mail uses: their own types would declare all globals of Node.js. */
declare module "node:net" {
  export interface Socket {
    on(event: "connect" | "secureConnect" | "close", listener: () => void): this;
    on(event: "error", listener: (error: Error) => void): this;
    destroy(): void;
  }
  export function connect(address: { host: string; port: number }): Socket;
}

declare module "node:tls" {
  import type { Socket } from "node:net";
  export function connect(address: { host: string; port: number }): Socket;
}

declare module "nodemailer/lib/smtp-connection" {
  import type { Socket } from "node:net";

  interface Options {
    host: string;
    port: number;
    /** An open socket. `secured`: it is encrypted already. */
    connection: Socket;
    secure: boolean;
    secured: boolean;
    /** Fails unless the server takes STARTTLS. */
    requireTLS: boolean;
    connectionTimeout: number;
    greetingTimeout: number;
    socketTimeout: number;
    socketCloseTimeout: number;
    maxResponseSize: number;
  }
  type Done = (error?: Error | null) => void;

  export default class SMTPConnection {
    constructor(options: Options);
    on(event: "error", listener: (error: Error) => void): this;
    connect(done: Done): void;
    login(credentials: { user: string; pass: string }, done: Done): void;
    send(envelope: { from: string; to: string[] }, message: string, done: Done): void;
    quit(): void;
    close(): void;
  }
}
