/** A complete server with HTTPS of its own, and agents that connect to it over HTTPS. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTemporaryDir } from "../directories.ts";
import { createCertificate } from "../fakes/certificate.ts";
import { reservePorts } from "../ports.ts";
import { runAgent, type RunningAgent } from "./agent.ts";
import { mintToken, startApi, type TestApi } from "../server/api.ts";

export const SERVICE_DOMAIN = "tunnels.example";

export class HttpsTestServer implements AsyncDisposable {
  /** With the files `ca.pem`, `cert.pem` and `key.pem`. */
  readonly directory: string;
  /** The certificate of the authority, in PEM. */
  readonly ca: string;
  readonly httpsPort: number;
  readonly redirectPort: number;
  readonly api: TestApi;
  readonly #agents: RunningAgent[] = [];

  private constructor(directory: string, ca: string, httpsPort: number, api: TestApi) {
    this.directory = directory;
    this.ca = ca;
    this.httpsPort = httpsPort;
    this.redirectPort = httpsPort + 1;
    this.api = api;
  }

  static async start(env: Record<string, string> = {}): Promise<HttpsTestServer> {
    const directory = await createTemporaryDir();
    const authority = createCertificate({ commonName: "Test CA" });
    const { cert, key } = createCertificate({ issuer: authority, names: [`*.${SERVICE_DOMAIN}`] });
    await Promise.all([
      writeFile(join(directory, "ca.pem"), authority.cert),
      writeFile(join(directory, "cert.pem"), cert),
      writeFile(join(directory, "key.pem"), key),
    ]);
    const httpsPort = await reservePorts(2);
    const api = await startApi({
      env: {
        SERVICE_DOMAIN,
        API_HOSTS: "localhost,127.0.0.1",
        HTTPS_PORT: String(httpsPort),
        HTTPS_HOST: "127.0.0.1",
        HTTPS_CERTIFICATE_FILE: join(directory, "cert.pem"),
        HTTPS_KEY_FILE: join(directory, "key.pem"),
        HTTP_REDIRECT_PORT: String(httpsPort + 1),
        ...env,
      },
    });
    return new HttpsTestServer(directory, authority.cert, httpsPort, api);
  }

  /**
   * Makes local servers public, each with a new account.
   * @param options `scope` of the agent's token, and `url` of the server for the agent (by default that of HTTPS).
   * @returns the agent.
   */
  async share(
    subdomain: string,
    port: number,
    options: { scope?: object; url?: string } = {},
  ): Promise<RunningAgent> {
    const { scope, url = `https://localhost:${this.httpsPort}` } = options;
    const { wireBytes } = await mintToken(await this.api.owner(), scope);
    const access = ["--server", url, "--token-file", "TOKEN"];
    const authority = ["--ca-file", join(this.directory, "ca.pem")];
    const agent = await runAgent(
      ["http", String(port), "--subdomain", subdomain, "--json", ...access, ...authority],
      { token: Buffer.from(wireBytes, "base64") },
    );
    this.#agents.push(agent);
    await agent.event("ready");
    return agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#agents) await agent[Symbol.asyncDispose]();
    await this.api.stop();
  }
}
