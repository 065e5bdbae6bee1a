/** The project's own rules for oxlint, which has the plugin interface of ESLint. */
import { importLayers } from "./import-layers.js";
import { patientWaits } from "./patient-waits.js";

export default {
  meta: { name: "underpass" },
  rules: { "import-layers": importLayers, "patient-waits": patientWaits },
};
