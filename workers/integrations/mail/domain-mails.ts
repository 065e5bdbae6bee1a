/** The mails about custom domains. */
import type { Config } from "../../config/config.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { PROOF_MISSING_MAX_MS } from "../../../protocol/limits.ts";
import type { LossReason, WarnedDomain } from "../../store/domains/domain-notices.ts";
import { composeMail, type Mail } from "./compose-mail.ts";

export function proofMissingMail(
  to: string,
  {
    domain,
    recordName,
    verificationToken,
    releaseAt,
  }: WarnedDomain & { /** The name of the TXT record. */ recordName: string },
  config: Config,
): Mail {
  return composeMail(
    to,
    `The DNS record of ${domain} is missing`,
    [
      `The TXT record that proves that ${domain} is yours was not found. Underpass releases the domain on ${releaseAt.toUTCString()} unless it finds the record before that time. Until then, nothing changes for the visitors of the domain.`,
      `Publish a TXT record at ${recordName} with this value: ${verificationToken}`,
      "If you no longer own the domain, ignore this email.",
    ],
    { label: "Your domains", url: `${config.publicOrigin}/domains` },
  );
}

const LOSS_REASONS: Record<LossReason, string> = {
  proof_missing: `The TXT record that proves that the domain is yours has been missing for ${PROOF_MISSING_MAX_MS / DAY_MS} days.`,
  proven_by_another:
    "Another organization has proved with a newer TXT record that the domain belongs to it.",
};

export function domainReleasedMail(
  to: string,
  { domain, reason }: { domain: string; reason: LossReason },
  config: Config,
): Mail {
  return composeMail(
    to,
    `${domain} was released`,
    [
      `The domain ${domain} no longer belongs to your organization on Underpass, and leads to none of your tunnels. ${LOSS_REASONS[reason]}`,
      "If the domain is yours, add it again and publish the new TXT record.",
    ],
    { label: "Your domains", url: `${config.publicOrigin}/domains` },
  );
}
