/** Short messages about an action, in a corner of the page. */
import { Toast } from "@base-ui/react/toast";
import { getErrorMessage } from "../../api/request.ts";
import { UpgradeHint } from "./upgrade-hint.tsx";

/** Long enough to read the message and to reach its button. */
const UNDO_SHOWN_MS = 15_000;

const manager = Toast.createToastManager();

export interface Undo {
  label: string;
  act: () => void;
}

/**
 * @param undo a button that takes the action back, while the message is shown.
 * @param subject the id of the thing that the action changed, if the next message about the thing replaces this one.
 */
export function notify(message: string, undo?: Undo, subject?: string): void {
  const actionProps = undo && { children: undo.label, onClick: undo.act };
  manager.add({
    id: subject,
    title: message,
    actionProps,
    timeout: undo && UNDO_SHOWN_MS,
  });
}

/** Screen readers announce it at once. */
export function notifyOfError(error: unknown): void {
  const title = (
    <>
      {getErrorMessage(error)}
      <UpgradeHint error={error} />
    </>
  );
  manager.add({ title, type: "error", priority: "high" });
}

export function Notifications() {
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className="notifications">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className={`notification ${toast.type ?? ""}`}>
      <Toast.Title className="text" render={<p />} />
      <Toast.Action className="link" />
      <Toast.Close className="quiet" aria-label="Close">
        ×
      </Toast.Close>
    </Toast.Root>
  ));
}
