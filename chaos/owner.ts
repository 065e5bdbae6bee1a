/** The owner of the experiment's organization: calls the API, and logs in again when the access token expires. */
const ANSWER_MAX_MS = 25_000;
const PAGE_ROWS = 500;

interface Credentials {
  email: string;
  password: string;
}

interface OwnerReply<Body> {
  /** 0: there was no response, or not all of it. */
  status: number;
  body: Body | undefined;
}

export class Owner {
  readonly #url: string;
  readonly #credentials: Credentials;
  #accessToken: string;

  /** @param url of the API. */
  constructor(url: string, credentials: Credentials, accessToken: string) {
    this.#url = url;
    this.#credentials = credentials;
    this.#accessToken = accessToken;
  }

  /** Never throws. Nothing is repeated, except after an answer that the access token has expired. */
  async call<Body>(method: string, path: string, body?: object): Promise<OwnerReply<Body>> {
    const reply = await this.#send<Body>(method, path, body);
    if (reply.status !== 401 || !(await this.#logIn())) return reply;
    return this.#send<Body>(method, path, body);
  }

  /** @returns all rows of a list; undefined when a page can't be read. */
  async list<Row extends object>(
    path: string,
    getId: (row: Row) => string,
  ): Promise<Row[] | undefined> {
    const rows: Row[] = [];
    for (;;) {
      const last = rows.at(-1);
      const after = last ? `&after=${getId(last)}` : "";
      const separator = path.includes("?") ? "&" : "?";
      const page = await this.call<Row[]>("GET", `${path}${separator}limit=${PAGE_ROWS}${after}`);
      if (page.status !== 200 || !page.body) return undefined;
      rows.push(...page.body);
      if (page.body.length < PAGE_ROWS) return rows;
    }
  }

  async #logIn(): Promise<boolean> {
    const { body } = await this.#send<{ access_token: string }>(
      "POST",
      "/auth/login",
      this.#credentials,
    );
    if (!body) return false;
    this.#accessToken = body.access_token;
    return true;
  }

  async #send<Body>(method: string, path: string, body?: object): Promise<OwnerReply<Body>> {
    const headers = {
      authorization: `Bearer ${this.#accessToken}`,
      ...(body && { "content-type": "application/json" }),
    };
    try {
      const response = await fetch(this.#url + path, {
        method,
        headers,
        signal: AbortSignal.timeout(ANSWER_MAX_MS),
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json");
      const parsed = response.ok ? ((isJson ? JSON.parse(text) : text) as Body) : undefined;
      return { status: response.status, body: parsed };
    } catch {
      return { status: 0, body: undefined };
    }
  }
}
