/** A readable name for a User-Agent, such as `Firefox on Linux`. */

/** The first match counts: most browsers also name the browsers that they are compatible with. */
const BROWSERS: [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Headless)?Chrome\/|\bCriOS\//, "Chrome"],
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

/** How crawlers and monitors name themselves: `Mozilla/5.0 (compatible; Googlebot/2.1; +http://…)`. */
const COMPATIBLE = /\bcompatible; ([\w. -]{1,40}?)\/\d/;

/** @returns the User-Agent itself when it names no known browser. */
export function describeDevice(userAgent: string): string {
  const nameIn = (table: [RegExp, string][]) =>
    table.find(([pattern]) => pattern.test(userAgent))?.[1];
  const browser = nameIn(BROWSERS);
  const system = nameIn(SYSTEMS);
  const named = COMPATIBLE.exec(userAgent)?.[1] ?? browser;
  if (named === undefined) return userAgent;
  return system === undefined || named !== browser ? named : `${named} on ${system}`;
}
