/** The deliveries that a receiver stores: in SQLite, in the order of their arrival. */

const RECEIVER_SWEEP_BATCH_ROWS = 1_000;
/** Bodies and headers in one page; a delivery that is larger has a page of its own. */
export const DELIVERIES_PAGE_MAX_BYTES = 4 * 1024 * 1024;

export interface NewDelivery {
  id: string;
  headers: Record<string, string>;
  contentType: string | null;
  body: Uint8Array;
}

export interface StoredDelivery extends NewDelivery {
  receivedAtMs: number;
  /** In the order of arrival. A position is never reused, even if its delivery is removed. */
  position: number;
}

type Row = {
  /** The position: the name of the column is part of the stored format. */
  place: number;
  id: string;
  received_at_ms: number;
  headers: string;
  content_type: string | null;
  body: ArrayBuffer;
  bytes: number;
};

export class Deliveries {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`create table if not exists deliveries (
      place integer primary key autoincrement,
      id text not null unique,
      received_at_ms integer not null,
      headers text not null,
      content_type text,
      bytes integer not null,
      body blob not null
    )`);
    sql.exec(
      "create table if not exists kept (bytes integer not null, latest_place integer not null)",
    );
    sql.exec("insert into kept select 0, 0 where not exists (select 1 from kept)");
  }

  has(id: string): boolean {
    return this.#sql.exec("select 1 from deliveries where id = ?", id).toArray().length > 0;
  }

  add({ id, headers, contentType, body }: NewDelivery, nowMs: number): void {
    const headerText = JSON.stringify(headers);
    const bytes = computeSize(headerText, body);
    const { place } = this.#sql
      .exec<{ place: number }>(
        `insert into deliveries (id, received_at_ms, headers, content_type, bytes, body)
         values (?, ?, ?, ?, ?, ?) returning place`,
        id,
        nowMs,
        headerText,
        contentType,
        bytes,
        body,
      )
      .one();
    this.#addBytes(bytes);
    this.#sql.exec("update kept set latest_place = ?", place);
  }

  /**
   * Removes the oldest deliveries up to position `upTo`, as many as are needed for this one.
   * @returns false when even all of them would not be enough. Then none is removed.
   */
  makeRoomFor({ headers, body }: NewDelivery, maxBytes: number, upTo: number): boolean {
    const excess = this.bytes + computeSize(JSON.stringify(headers), body) - maxBytes;
    if (excess <= 0) return true;
    const oldest = this.#sql.exec<{ place: number; bytes: number }>(
      "select place, bytes from deliveries where place <= ? order by place",
      upTo,
    );
    let removable = 0;
    for (const { place, bytes } of oldest) {
      removable += bytes;
      if (removable < excess) continue;
      this.#sql.exec("delete from deliveries where place <= ?", place);
      this.#addBytes(-removable);
      return true;
    }
    return false;
  }

  /** The deliveries after a position, the oldest first; as many as fit in one page. */
  readPage(
    after: number,
    { limit, sinceMs }: { limit: number; sinceMs: number },
  ): StoredDelivery[] {
    const page: StoredDelivery[] = [];
    let bytes = 0;
    const rows = this.#sql.exec<Row>(
      "select * from deliveries where place > ? and received_at_ms >= ? order by place limit ?",
      after,
      sinceMs,
      limit,
    );
    for (const row of rows) {
      bytes += row.bytes;
      if (page.length > 0 && bytes > DELIVERIES_PAGE_MAX_BYTES) break;
      page.push({
        position: row.place,
        id: row.id,
        receivedAtMs: row.received_at_ms,
        headers: JSON.parse(row.headers) as Record<string, string>,
        contentType: row.content_type,
        body: new Uint8Array(row.body),
      });
    }
    return page;
  }

  /** The highest position that was ever assigned. */
  get latestPosition(): number {
    return this.#sql.exec<{ place: number }>("select latest_place as place from kept").one().place;
  }

  /** When the oldest delivery arrived. */
  get oldestMs(): number | null {
    return this.#findFirstMs("place");
  }

  get latestMs(): number | null {
    return this.#findFirstMs("place desc");
  }

  get count(): number {
    return this.#sql.exec<{ n: number }>("select count(*) as n from deliveries").one().n;
  }

  /** Removes a batch of the deliveries that arrived before a time. @returns whether none are left. */
  removeBefore(beforeMs: number): boolean {
    const removed = this.#sql
      .exec<{ bytes: number }>(
        `delete from deliveries where place in
           (select place from deliveries where received_at_ms < ? order by place limit ?)
         returning bytes`,
        beforeMs,
        RECEIVER_SWEEP_BATCH_ROWS,
      )
      .toArray();
    this.#addBytes(-removed.reduce((sum, { bytes }) => sum + bytes, 0));
    return removed.length < RECEIVER_SWEEP_BATCH_ROWS;
  }

  /** The size of all bodies and headers. Updated with each change: a sum would read every row for each delivery. */
  get bytes(): number {
    return this.#sql.exec<{ bytes: number }>("select bytes from kept").one().bytes;
  }

  #addBytes(bytes: number): void {
    if (bytes !== 0) this.#sql.exec("update kept set bytes = bytes + ?", bytes);
  }

  #findFirstMs(order: "place" | "place desc"): number | null {
    const [row] = this.#sql
      .exec<{ at: number }>(`select received_at_ms as at from deliveries order by ${order} limit 1`)
      .toArray();
    return row?.at ?? null;
  }
}

export function computeSize(headerText: string, body: Uint8Array): number {
  return headerText.length + body.byteLength;
}
