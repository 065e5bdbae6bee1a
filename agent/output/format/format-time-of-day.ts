/** `09:05:00`, in the time zone of this machine. */
export function formatTimeOfDay(date: Date): string {
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}
