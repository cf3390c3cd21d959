"use strict";
// Lists the operations of /openapi.json and sends what the reader fills in. Everything is set as text, never as HTML.

const find = (root, selector) => root.querySelector(selector);
// A page that was opened with credentials in its address hands them on to relative ones, which fetch then refuses.
function ours(path) {
  const address = new URL(path, document.baseURI);
  address.username = "";
  address.password = "";
  return address;
}
const resolve = (contract, schema) =>
  schema && schema.$ref ? contract.components.schemas[schema.$ref.split("/").pop()] : schema;

function exampleOf(contract, schema) {
  schema = resolve(contract, schema);
  if (schema === undefined) return null;
  if (schema.examples) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return exampleOf(contract, schema.anyOf.find((each) => each.type !== "null"));
  if (schema.properties) {
    const required = schema.required || [];
    const names = Object.keys(schema.properties).filter((name) => required.includes(name));
    return Object.fromEntries(names.map((name) => [name, exampleOf(contract, schema.properties[name])]));
  }
  return { string: "", integer: 0, number: 0, boolean: false, array: [], object: {} }[schema.type] ?? null;
}

function parameterField(parameter) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const note = document.createElement("small");
  input.name = parameter.name;
  input.required = parameter.required === true;
  input.placeholder = parameter.schema.default ?? parameter.schema.examples?.[0] ?? "";
  note.textContent = ` ${parameter.in}${input.required ? ", required" : ""}. ${parameter.description ?? ""}`;
  label.append(parameter.name, note, input);
  return label;
}

function show(contract, path, method, operation) {
  const view = find(document, "#operation").content.cloneNode(true);
  const form = find(view, "form");
  const parameters = operation.parameters || [];
  const schema = operation.requestBody?.content["application/json"].schema;
  find(view, ".method").textContent = method.toUpperCase();
  find(view, ".path").textContent = path;
  find(view, ".summary").textContent = operation.summary;
  find(view, ".description").textContent = operation.description ?? "";
  find(view, ".parameters").append(...parameters.map(parameterField));
  const body = find(view, "textarea");
  if (schema) {
    const example = exampleOf(contract, schema.anyOf ? schema.anyOf[0] : schema);
    body.value = JSON.stringify(example, null, 2);
  } else {
    find(view, ".body").remove();
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, path, method, parameters, schema ? body.value : null);
  });
  return view;
}

async function send(form, path, method, parameters, body) {
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    const value = form.elements[parameter.name].value;
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
    else if (value !== "") query.set(parameter.name, value);
  }
  const token = find(document, "#token").value;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const status = find(form, "output");
  const shown = find(form, "pre");
  status.textContent = "waiting …";
  shown.hidden = true;
  const started = performance.now();
  try {
    const target = `.${path}${query.size ? `?${query}` : ""}`;
    const answer = await fetch(ours(target), { method: method.toUpperCase(), headers, body: body || undefined });
    // The text is shown as it came: parsing it would change large integers.
    shown.textContent = await answer.text();
    shown.hidden = false;
    status.textContent = `HTTP ${answer.status}, ${Math.round(performance.now() - started)} ms`;
  } catch (error) {
    status.textContent = String(error);
  }
}

async function main() {
  const main = find(document, "#operations");
  const answer = await fetch(ours("./openapi.json"));
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  const contract = await answer.json();
  find(document, "#description").textContent = contract.info.description;
  main.replaceChildren();
  let section = "";
  for (const [path, methods] of Object.entries(contract.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.tags[0] !== section) {
        section = operation.tags[0];
        const heading = document.createElement("h2");
        heading.textContent = section;
        main.append(heading);
      }
      main.append(show(contract, path, method, operation));
    }
  }
}

main().catch((error) => {
  find(document, "#operations").textContent = `The contract cannot be read: ${error.message}`;
});
