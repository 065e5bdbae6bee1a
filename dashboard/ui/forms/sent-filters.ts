/** Filters that the field has set, and that are on their way into the URL while the user may type on. */
export class SentFilters {
  #sent: string[] = [];

  /** @param current the filter of the URL. @returns whether the wanted filter must be set: it is not the latest one. */
  send(wanted: string, current: string): boolean {
    if (wanted === (this.#sent.at(-1) ?? current)) return false;
    this.#sent.push(wanted);
    return true;
  }

  /** Called with each filter of the URL. @returns whether it was sent, so that the text of the field may be newer. */
  receive(filter: string): boolean {
    const index = this.#sent.indexOf(filter);
    // A change from elsewhere replaces all that was sent: one of these that appears later does so by a change, too.
    this.#sent = index < 0 ? [] : this.#sent.slice(index + 1);
    return index >= 0;
  }
}
