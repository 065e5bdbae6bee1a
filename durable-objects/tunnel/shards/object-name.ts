/** The names of a tunnel's objects: the first one has the tunnel's id, the others `<id>/1`, `<id>/2` and so on. */

/** One of a tunnel's objects. */
export interface ShardAddress {
  tunnelId: string;
  /** 0: the first one, which every tunnel has. */
  shard: number;
}

export function toObjectName(tunnelId: string, shard: number): string {
  return shard === 0 ? tunnelId : `${tunnelId}/${shard}`;
}

export function parseObjectName(name: string): ShardAddress {
  const [tunnelId = "", shard = "0"] = name.split("/");
  return { tunnelId, shard: Number(shard) };
}
