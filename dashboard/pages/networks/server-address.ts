/** @returns the server's own address in the network: the first one after the network address. */
export function getServerAddress(cidr: string): string {
  const [address = ""] = cidr.split("/");
  return address.replace(/\d+$/, (last) => String(Number(last) + 1));
}
