/** Lint rule: imports, static and dynamic, follow the table of layers.js. */
import { dirname, relative, resolve, sep } from "node:path";
import { findLayer, mayImport } from "./layers.js";

export const importLayers = {
  meta: {
    type: "problem",
    schema: [],
    messages: {
      forbidden: "{{layer}}/ may not import {{imported}}/ (lint/layers.js)",
      noLayer: "{{path}} belongs to no layer: add its folder to lint/layers.js and ARCHITECTURE.md",
    },
  },
  create(context) {
    const toPath = (file) => relative(context.cwd, file).split(sep).join("/");
    const path = toPath(context.filename);
    // Settings of tools, at the root, may read whatever they configure.
    if (!path.includes("/")) return {};
    const layer = findLayer(path);
    if (layer === undefined) {
      return {
        Program: (node) => context.report({ node, messageId: "noLayer", data: { path } }),
      };
    }
    const check = ({ source }) => {
      const specifier = source?.value;
      if (typeof specifier !== "string" || !specifier.startsWith(".")) return;
      const target = toPath(resolve(dirname(context.filename), specifier));
      const imported = findLayer(target);
      if (imported === undefined || mayImport(layer, imported)) return;
      context.report({ node: source, messageId: "forbidden", data: { layer, imported } });
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
      TSImportType: check,
    };
  },
};
