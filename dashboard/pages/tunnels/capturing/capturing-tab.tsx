/** The tab with the capture settings of a tunnel: which requests are stored, and which parts of them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { TunnelCaptureSettings } from "../../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { captureSettingsQuery } from "../../../api/capture-settings.ts";
import { call } from "../../../api/session.ts";
import { useHasRole } from "../../../app/roles.ts";
import { Button } from "../../../ui/button.tsx";
import { CommandLine } from "../../../ui/command-line.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { ConfirmButton } from "../../../ui/forms/dialog.tsx";
import { CheckField, TextAreaField } from "../../../ui/forms/fields.tsx";
import { Form } from "../../../ui/forms/form.tsx";
import { withEntryErrors } from "../../../ui/forms/lines.ts";
import { Badge, Section } from "../../../ui/section.tsx";
import { useDraft, type Draft } from "../unsaved-changes.ts";
import { mergeSettings, toEditedSettings, type EditedSettings } from "./merge-settings.ts";

export function CapturingTab({ tunnel }: { tunnel: Tunnel }) {
  const { id } = tunnel;
  const settings = useQuery(captureSettingsQuery(id));
  const canChange = useHasRole("member");
  const draft = useDraft<SettingsDraft>(tunnel, {
    tab: "capturing",
    subject: `The capture form of ${tunnel.name}`,
  });
  return (
    <>
      <Section
        title="Capturing"
        actions={draft.value !== null && <Badge tone="warning">Not saved</Badge>}
      >
        <QueryContent query={settings} lines={6}>
          {(loaded) =>
            canChange ? (
              <SettingsForm settings={loaded} draft={draft} />
            ) : (
              <SettingsFacts settings={loaded} />
            )
          }
        </QueryContent>
      </Section>
      <CapturedRequestsSection tunnel={tunnel} canDelete={canChange} />
      <CommandLine
        requests={[
          { label: "Read the settings", path: `/tunnels/${id}/inspector` },
          {
            label: "Replace all settings",
            method: "PUT",
            path: `/tunnels/${id}/inspector`,
            body: { capture: true, bodies: false, redactHeaders: ["authorization", "cookie"] },
          },
          {
            label: "Delete the captured requests",
            method: "DELETE",
            path: `/inspector?tunnel_id=${id}`,
          },
        ]}
      />
    </>
  );
}

interface SettingsDraft {
  edited: EditedSettings;
  /** The settings when the user began to edit them. */
  base: TunnelCaptureSettings;
}

interface SettingsFormProps {
  settings: TunnelCaptureSettings;
  draft: Draft<SettingsDraft>;
}

function SettingsForm({ settings, draft }: SettingsFormProps) {
  const { id } = settings;
  const queries = useQueryClient();
  const base = draft.value?.base ?? settings;
  const edited = draft.value?.edited ?? toEditedSettings(settings);
  const { capture, bodies, allowReplay, redactHeaders } = edited;

  function edit(changes: Partial<EditedSettings>): void {
    draft.set({ edited: { ...edited, ...changes }, base });
  }

  async function save(): Promise<void> {
    const current = await queries.fetchQuery({ ...captureSettingsQuery(id), staleTime: 0 });
    const changed = mergeSettings(base, edited, current);
    const sent = call<TunnelCaptureSettings>("PUT", `/tunnels/${id}/inspector`, changed);
    const saved = await withEntryErrors({ redactHeaders: changed.redactHeaders }, sent);
    queries.setQueryData(captureSettingsQuery(id).queryKey, saved);
    draft.set(null);
    notify("The settings apply from the next request.");
  }
  return (
    <Form
      submit="Save"
      beside={
        draft.value !== null && (
          <Button kind="quiet" onClick={() => draft.set(null)}>
            Discard the changes
          </Button>
        )
      }
      onSubmit={save}
    >
      <CheckField
        name="capture"
        label="Capture requests"
        checked={capture}
        onChange={({ currentTarget }) => edit({ capture: currentTarget.checked })}
        hint="Stores every request with its response, for as long as the plan includes."
      />
      <CheckField
        name="bodies"
        label="Capture bodies and messages"
        checked={bodies}
        onChange={({ currentTarget }) => edit({ bodies: currentTarget.checked })}
        hint="The first 512 KiB in each direction."
      />
      <CheckField
        name="allowReplay"
        label="Allow replays"
        checked={allowReplay}
        onChange={({ currentTarget }) => edit({ allowReplay: currentTarget.checked })}
        hint="Members can send a captured request to the local server again."
      />
      <TextAreaField
        name="redactHeaders"
        label="Redacted headers"
        required={false}
        className="code-area"
        value={redactHeaders}
        onChange={({ currentTarget }) => edit({ redactHeaders: currentTarget.value })}
        spellCheck={false}
        hint="Their values are never stored. One name per line, at most 100."
      />
    </Form>
  );
}

/** For users who may not change the settings. */
function SettingsFacts({ settings }: { settings: TunnelCaptureSettings }) {
  const { capture, bodies, allowReplay, redactHeaders } = settings;
  return (
    <Facts>
      <Fact name="Capture requests">{capture ? "yes" : "no"}</Fact>
      <Fact name="Capture bodies and messages">{bodies ? "yes" : "no"}</Fact>
      <Fact name="Allow replays">{allowReplay ? "yes" : "no"}</Fact>
      <Fact name="Redacted headers">{redactHeaders.join(", ") || "none"}</Fact>
    </Facts>
  );
}

interface CapturedRequestsProps {
  tunnel: Tunnel;
  canDelete: boolean;
}

function CapturedRequestsSection({ tunnel, canDelete }: CapturedRequestsProps) {
  const { id, name } = tunnel;
  const queries = useQueryClient();
  const deleteAll = (
    <ConfirmButton
      button={{ children: "Delete all", "aria-label": "Delete all captured requests" }}
      title="Delete the captured requests?"
      submit="Delete"
      name={name}
      onSubmit={async () => {
        await call("DELETE", `/inspector?tunnel_id=${id}`);
        await queries.invalidateQueries();
        notify(`The captured requests of ${name} were deleted.`);
      }}
    >
      <p>
        Every request of <strong>{name}</strong> that was captured until now is deleted. This can't
        be undone.
      </p>
    </ConfirmButton>
  );
  return (
    <Section
      title="Captured requests"
      actions={
        <>
          <Link to="/requests" search={{ tunnel_id: id }} className="button">
            Open
          </Link>
          {canDelete && deleteAll}
        </>
      }
    >
      <p className="hint">
        At most 64 MiB for each tunnel: the oldest requests are deleted first, and all of them with
        the tunnel.
      </p>
    </Section>
  );
}
