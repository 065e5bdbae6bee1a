/** The servers of HTTPS, and of plain HTTP beside it. */
import type { Server } from "node:net";
import type { MetricFamily } from "../../../shared/metrics/exposition.ts";
import { AcmeCertificates } from "./acme/acme-certificates.ts";
import { CertificateStore } from "./acme/certificate-store.ts";
import { Issuer } from "./acme/issuer.ts";
import { CertificateFiles, readKeyPair } from "./certificate-files.ts";
import { HttpsServer, type HttpsServerOptions } from "./https-server.ts";
import { createRedirectServer } from "./redirect-server.ts";
import type { AcmeSettings, HttpsSettings } from "./settings.ts";

interface ListenersOptions extends Pick<HttpsServerOptions, "admit" | "serve" | "socketOptions"> {
  /** The host names of the API, which get their certificates at once. */
  apiHosts: Iterable<string>;
  /** Whether a host belongs to this server or to one of its tunnels. Rejects when that can't be known now. */
  isAllowed: (name: string) => Promise<boolean>;
}

interface Listeners {
  https: Server;
  redirect: Server;
  readMetrics: () => MetricFamily[];
}

/** @returns the servers, which do not listen yet. */
export async function createListeners(
  { files: paths, acme: settings, publicPort }: HttpsSettings,
  { apiHosts, isAllowed, ...connections }: ListenersOptions,
): Promise<Listeners> {
  const files = paths && new CertificateFiles(paths, await readKeyPair(paths));
  const acme = settings && (await createAcme(settings, isAllowed));
  const server = new HttpsServer({
    ...connections,
    keyPair: files?.keyPair,
    findContext: acme
      ? async (name) => (files?.isFor(name) ? undefined : await acme.certificates.getContext(name))
      : undefined,
  });
  files?.watch((keyPair) => server.replaceKeyPair(keyPair));
  const acmeNames = [...apiHosts].filter((name) => !files?.isFor(name));
  acme?.certificates.start(acmeNames);
  const redirect = createRedirectServer({
    httpsPort: publicPort,
    findAnswer: (path) => acme?.issuer.findAnswer(path),
    admit: connections.admit,
  });
  const readMetrics = () => [
    toExpiryMetric({
      file: files?.expiresAtMs,
      acme: acme?.certificates.findExpiryMs(acmeNames),
    }),
  ];
  return { https: server.tcp, redirect, readMetrics };
}

/** @param expiriesMs by where the certificate is from, in ms since the epoch. */
function toExpiryMetric(expiriesMs: Record<string, number | undefined>): MetricFamily {
  return {
    name: "underpass_server_certificate_expiry_timestamp_seconds",
    help: "When the certificate in HTTPS_CERTIFICATE_FILE, and the first one that ACME obtained for the API, expire (Unix time).",
    type: "gauge",
    samples: Object.entries(expiriesMs).flatMap(([source, ms]) =>
      ms === undefined ? [] : { labels: { source }, value: ms / 1_000 },
    ),
  };
}

async function createAcme(
  { directory, directoryUrl, email }: AcmeSettings,
  isAllowed: ListenersOptions["isAllowed"],
) {
  const store = new CertificateStore(directory);
  const issuer = new Issuer({ directoryUrl, email, accountKey: await store.getAccountKey() });
  const issue = (name: string) => issuer.issue(name);
  return { issuer, certificates: new AcmeCertificates({ store, issue, isAllowed }) };
}
