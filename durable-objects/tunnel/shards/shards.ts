/**
 * The objects of a tunnel whose visitors are spread over several of them. The first one coordinates: workers call it
 * alone, and it passes each change on to the others before it returns. The others serve visitors and agents, record
 * captures, and report their counters to the first one.
 */
import { parseObjectName, toObjectName, type ShardAddress } from "./object-name.ts";

/** `version` is the row's, so that a change that arrives late is ignored. */
export interface ShardCount {
  version: number;
  /** How many objects serve visitors. */
  count: number;
}

interface StoredShards extends ShardCount {
  /** How many objects have ever served: all of them receive every change and are asked for captures. */
  created: number;
  /** An object that an alarm wakes may not know its name. */
  address: ShardAddress;
}

const KEY = "shards";

type Storage = Pick<SyncKvStorage, "get" | "put">;

export class Shards<Stub> {
  readonly #kv: Storage;
  readonly #openStub: (name: string) => Stub;
  #stored: StoredShards;

  /** @param name of the object, as far as the platform knows it. */
  constructor(kv: Storage, name: string | undefined, openStub: (name: string) => Stub) {
    this.#kv = kv;
    this.#openStub = openStub;
    const address = parseObjectName(name ?? "");
    this.#stored = kv.get<StoredShards>(KEY) ?? {
      version: -1,
      count: 1,
      created: 1,
      address,
    };
  }

  /** undefined: the platform does not know the object's name. */
  get tunnelId(): string | undefined {
    return this.#stored.address.tunnelId || undefined;
  }

  /** 0: the tunnel's first object. */
  get shard(): number {
    return this.#stored.address.shard;
  }

  get isFirst(): boolean {
    return this.shard === 0;
  }

  /** Whether the tunnel ever had more than one object. */
  get hasOthers(): boolean {
    return this.#stored.created > 1;
  }

  /** How many objects serve visitors. */
  get count(): number {
    return this.#stored.count;
  }

  /**
   * Whether this object may serve visitors. The first one always may; another one only
   * after it has received the tunnel's settings, which precede the count, and until the tunnel is given fewer objects.
   */
  get isServing(): boolean {
    return this.shard < this.count;
  }

  /**
   * Whether a visitor's request is handled here instead of by the first object.
   * @param hasAgent called only where the answer depends on it.
   */
  servesHere(hasAgent: () => boolean): boolean {
    return this.isFirst || (this.isServing && hasAgent());
  }

  /** The tunnel's first object. */
  get first(): Stub {
    return this.#openStub(this.#stored.address.tunnelId);
  }

  /** @returns false when a newer count is stored. The same one again is not outdated: its delivery is repeated. */
  set({ tunnelId, shard }: ShardAddress, { version, count }: ShardCount): boolean {
    if (this.#stored.version > version) return false;
    const created = Math.max(this.#stored.created, count);
    this.#stored = { version, count, created, address: { tunnelId, shard } };
    this.#kv.put<StoredShards>(KEY, this.#stored);
    return true;
  }

  /** Runs a call on every other object of the tunnel; none for a tunnel that always had one. @throws when one call fails. */
  async forOthers<Result>(
    call: (stub: Stub, address: ShardAddress) => Promise<Result>,
  ): Promise<Result[]> {
    if (!this.isFirst || !this.hasOthers) return [];
    const { created, address } = this.#stored;
    const { tunnelId } = address;
    const others = Array.from({ length: created - 1 }, (_, index) => index + 1);
    return Promise.all(
      others.map(async (shard) =>
        call(this.#openStub(toObjectName(tunnelId, shard)), { tunnelId, shard }),
      ),
    );
  }
}
