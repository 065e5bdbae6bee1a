/** What a client says of itself, in the words of its owner: `Firefox on Linux`. */

/** The first that fits: most browsers name those that they want to be taken for as well. */
const CLIENTS: [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Chrome|CriOS)\//, "Chrome"],
  [/\bVersion\/.+\bSafari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** @returns what it said, where no browser is known by it. */
export function describeDevice(userAgent: string): string {
  const nameIn = (table: [RegExp, string][]) =>
    table.find(([pattern]) => pattern.test(userAgent))?.[1];
  const client = nameIn(CLIENTS);
  const system = nameIn(SYSTEMS);
  return client === undefined || system === undefined ? userAgent : `${client} on ${system}`;
}
