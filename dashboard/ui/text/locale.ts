/** The language of words and digits: English, as the rest of the page. */

/** @param browser the browser's own format. @returns its region if it is English, with its clock of 12 or 24 hours. */
export function toPageLocale({ locale, hourCycle }: Intl.ResolvedDateTimeFormatOptions): string {
  const language = /^en\b/.test(locale) ? locale : "en";
  return new Intl.Locale(language, hourCycle && { hourCycle }).toString();
}

/** For all formats of numbers and times. */
export const LOCALE = toPageLocale(
  new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions(),
);

/**
 * Makes `navigator.language` valid for libraries that give it to Intl, which throws a RangeError for the language that
 * Chromium has on a system without a locale: `en-US@posix`.
 */
export function replaceInvalidLanguage(): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: LOCALE, configurable: true });
  }
}
