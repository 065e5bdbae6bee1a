/** The server's own address in a network: the first one after that of the network itself. */
export function getServerAddress(cidr: string): string {
  const [address = ""] = cidr.split("/");
  return address.replace(/\d+$/, (last) => String(Number(last) + 1));
}
