/**
 * PostgreSQL's COPY (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY) with the package `pg`,
 * which passes its messages to an object of this kind instead of a query's text.
 */
import { once } from "node:events";
import { Readable } from "node:stream";
import type pg from "pg";

/** The part of `pg`'s connection that such an object uses. */
interface Connection {
  stream: NodeJS.ReadableStream & NodeJS.WritableStream & { writableNeedDrain: boolean };
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

/** Streams the rows that `COPY … TO STDOUT` returns, one chunk for each row. The server waits for a slow reader. */
export function copyOut(client: pg.Client, text: string): Readable {
  let connection: Connection | undefined;
  const rows = new Readable({
    objectMode: true,
    read: () => void connection?.stream.resume(),
  });
  submit(client, {
    ...createHandlers((error) => rows.destroy(error)),
    submit(opened) {
      connection = opened;
      opened.query(text);
    },
    handleCopyData({ chunk }) {
      // `pg` overwrites the memory of a message with later ones.
      if (!rows.push(Buffer.from(chunk))) connection?.stream.pause();
    },
    handleReadyForQuery: () => void rows.push(null),
  });
  return rows;
}

/** Sends `COPY … FROM STDIN` and the rows. @returns the number of rows that were stored. */
export async function copyIn(
  client: pg.Client,
  text: string,
  chunks: AsyncIterable<Buffer>,
): Promise<number> {
  const opened = Promise.withResolvers<Connection>();
  const completed = Promise.withResolvers<number>();
  let count = 0;
  const fail = (error: Error) => {
    opened.reject(error);
    completed.reject(error);
  };
  // Reported where they are awaited.
  opened.promise.catch(() => {});
  completed.promise.catch(() => {});
  submit(client, {
    ...createHandlers(fail),
    submit: (connection) => connection.query(text),
    handleCopyInResponse: (connection) => opened.resolve(connection),
    handleCommandComplete({ text: tag }) {
      count = Number(/\d+$/.exec(tag)?.[0] ?? 0);
    },
    handleReadyForQuery: () => completed.resolve(count),
  });
  const connection = await opened.promise;
  try {
    for await (const chunk of chunks) {
      connection.sendCopyFromChunk(chunk);
      if (connection.stream.writableNeedDrain) {
        await Promise.race([once(connection.stream, "drain"), completed.promise]);
      }
    }
    connection.endCopyFrom();
  } catch (error) {
    connection.sendCopyFail("the rows can't be read");
    throw error;
  }
  return completed.promise;
}

interface CopyQuery {
  submit(connection: Connection): void;
  handleCopyInResponse(connection: Connection): void;
  handleCopyData(message: { chunk: Buffer }): void;
  handleCommandComplete(message: { text: string }): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
}

function createHandlers(onError: (error: Error) => void): Omit<CopyQuery, "submit"> {
  return {
    handleCopyInResponse: (connection) => connection.sendCopyFail("no rows were offered"),
    handleCopyData: () => {},
    handleCommandComplete: () => {},
    handleReadyForQuery: () => {},
    handleError: onError,
  };
}

/** The types of `pg` know only its own kinds of queries. */
function submit(client: pg.Client, query: CopyQuery): void {
  (client as unknown as { query(query: CopyQuery): void }).query(query);
}
