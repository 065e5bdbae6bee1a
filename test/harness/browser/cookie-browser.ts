/** A minimal browser for sign-in tests: it stores cookies by host and lets a test inspect each redirect. */
export interface Visit {
  url: string;
  status: number;
  headers: Headers;
  body: string;
  /** The target of a redirect. */
  location: URL | null;
}

export class CookieBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  async open(url: string | URL, headers: Record<string, string> = {}): Promise<Visit> {
    const { hostname, href } = new URL(url);
    const jar = this.#jar(hostname);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const sent = { ...(cookie === "" ? {} : { cookie }), ...headers };
    const response = await this.send(href, sent);
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "" || /; *max-age=0/i.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    const target = response.headers.get("location");
    return {
      url: href,
      status: response.status,
      headers: response.headers,
      body: await response.text(),
      location: target === null ? null : new URL(target, href),
    };
  }

  /** Follows redirects until a response is no redirect, or `isEnd` accepts its target. */
  async followRedirects(
    url: string | URL,
    isEnd: (url: URL) => boolean = () => false,
  ): Promise<Visit> {
    let visit = await this.open(url);
    while (visit.location !== null && !isEnd(visit.location)) {
      visit = await this.open(visit.location);
    }
    return visit;
  }

  cookie(hostname: string, name: string): string | undefined {
    return this.#jar(hostname).get(name);
  }

  setCookie(hostname: string, name: string, value: string): void {
    this.#jar(hostname).set(name, value);
  }

  protected send(href: string, headers: Record<string, string>): Promise<Response> {
    return fetch(href, { redirect: "manual", headers });
  }

  #jar(hostname: string): Map<string, string> {
    let jar = this.#cookies.get(hostname);
    if (!jar) this.#cookies.set(hostname, (jar = new Map<string, string>()));
    return jar;
  }
}
