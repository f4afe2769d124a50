/** A job that is made of a template: the values of its parameters, each of the type that the template says. */

import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/client";
import { Notice, Sheet } from "../../ui/parts";
import { isObject, type Path } from "../definition";
import { asWritten } from "../value";
import { useForm } from "./context";
import { ChoiceOf, Spelled } from "./field";
import { NUMBER_OR_TEXT, TEXT, YAML } from "./texts";

interface Parameter {
  type?: string;
  default?: unknown;
  enum?: unknown[];
  description?: string;
}

export function TemplateSection() {
  const { value, headers } = useForm();
  const name = typeof value.template === "string" ? value.template : "";
  const template = useQuery({
    queryKey: ["template", headers["X-Namespace"], name],
    queryFn: ({ signal }) => answer(api.GET("/templates/{id}", { params: { path: { id: name } }, headers, signal })),
    enabled: name !== "",
    retry: false,
  });
  if (!name) return null;
  const parameters = isObject(template.data?.parameters) ? (template.data.parameters as Record<string, Parameter>) : {};
  const entries = Object.entries(parameters);
  return (
    <Sheet title={`From the template ${name}`}>
      <div className="stack">
        {template.error && (
          <Notice tone="bad">
            <span>There is no template {name}: choose another one, or create it first.</span>
          </Notice>
        )}
        {template.data && (
          <p className="soft">
            {entries.length ? "Give it its values. " : "It has no parameters. "}What you say in the other fields goes
            before what the template says. It is filled in when the job is saved.
          </p>
        )}
        {entries.length > 0 && (
          <div className="grid">
            {entries.map(([one, parameter]) => (
              <ParameterField key={one} path={["with", one]} name={one} parameter={parameter} />
            ))}
          </div>
        )}
      </div>
    </Sheet>
  );
}

function ParameterField({ path, name, parameter }: { path: Path; name: string; parameter: Parameter }) {
  const { type = "string", description } = parameter;
  const isNeeded = parameter.default === undefined;
  const usual = isNeeded ? undefined : asWritten(parameter.default);
  const hint = [description, isNeeded ? "The template needs it." : `As usual: ${usual}.`].filter(Boolean).join(" ");
  const values = parameter.enum ?? (type === "boolean" ? [true, false] : null);
  if (values) return <ChoiceOf path={path} values={values} word={{ label: name, hint: description, usual }} />;
  const spelling = { string: TEXT, integer: NUMBER_OR_TEXT, number: NUMBER_OR_TEXT }[type] ?? YAML;
  return <Spelled path={path} spelling={spelling} label={name} hint={hint} lines={spelling === YAML} />;
}
