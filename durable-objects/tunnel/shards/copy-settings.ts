/** Copies the settings of a tunnel to an object that joins it. */
import type { AccessSettingsInput } from "../../../access/settings.ts";
import type { VersionedCaptureSettings } from "../../../protocol/schemas/inspector/captures.ts";
import type { StopState } from "../lifetime.ts";
import type { Maintenance } from "../proxy/access-policy.ts";
import type { CustomHostState } from "../proxy/custom-hosts.ts";

/** Where the settings are: the parts of the first object. */
interface SettingsSource {
  access: {
    publishedSettings: AccessSettingsInput | undefined;
    maintenance: Maintenance | undefined;
  };
  captures: { publishedSettings: VersionedCaptureSettings | undefined };
  lifetime: { stopState: StopState | undefined };
  customHosts: { states: [host: string, state: CustomHostState][] };
}

interface SettingsReceiver {
  publishAccessSettings(settings: AccessSettingsInput): Promise<void>;
  setMaintenance(tunnelId: string, maintenance: Maintenance): Promise<void>;
  publishCaptureSettings(settings: VersionedCaptureSettings): Promise<void>;
  setStopState(stopState: StopState): Promise<void>;
  setCustomHost(host: string, state: CustomHostState): Promise<void>;
}

/** Each has a version, so that a newer one, which is passed on meanwhile, stays. */
export async function copySettings(
  { access, captures, lifetime, customHosts }: SettingsSource,
  tunnelId: string,
  to: SettingsReceiver,
): Promise<void> {
  const { publishedSettings, maintenance } = access;
  if (publishedSettings) await to.publishAccessSettings(publishedSettings);
  if (maintenance) await to.setMaintenance(tunnelId, maintenance);
  if (captures.publishedSettings) await to.publishCaptureSettings(captures.publishedSettings);
  if (lifetime.stopState) await to.setStopState(lifetime.stopState);
  for (const [host, state] of customHosts.states) await to.setCustomHost(host, state);
}
