/** A point in time to the millisecond, with the time zone. */
import { LOCALE } from "../../../ui/text/locale.ts";

const precise = new Intl.DateTimeFormat(LOCALE, {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
  timeZoneName: "short",
});

/** `23 Nov 2026, 07:15:42.120 CET`, in the time zone of the user. */
export function PreciseTime({ timestamp }: { timestamp: string }) {
  return <time dateTime={timestamp}>{precise.format(new Date(timestamp))}</time>;
}
