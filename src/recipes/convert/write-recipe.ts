import path from 'node:path'
import type { Json } from '../../core/base/json.ts'
import type { ExtensionConfig, Recipe, RecipeParameter } from '../agent-file/recipe.ts'
import { ownValue } from '../text/fields.ts'
import { writeYaml } from '../text/yaml.ts'

/** Writes a recipe as a file that reads back as the same recipe. Paths are relative to its folder. */
export function writeRecipe(recipe: Recipe, folder?: string): Promise<string> {
  const { settings, response, retry } = recipe
  return writeYaml({
    version: recipe.version,
    title: recipe.title,
    description: recipe.description,
    instructions: recipe.instructions ?? undefined,
    prompt: recipe.prompt ?? undefined,
    activities: filled(recipe.activities),
    author: recipe.author === null ? undefined : withoutNulls(recipe.author),
    parameters: filled(recipe.parameters.map(parameterFields)),
    extensions: recipe.extensions?.map(extensionFields),
    settings: filledMap({
      goose_provider: settings.provider,
      goose_model: settings.model,
      temperature: settings.temperature,
      max_turns: settings.maxTurns,
    }),
    response: response === null ? undefined : { json_schema: response.jsonSchema as Json },
    sub_recipes: filled(recipe.subRecipes.map((sub) => subRecipeFields(sub, folder))),
    retry:
      retry === null
        ? undefined
        : withoutNulls({
            max_retries: retry.maxRetries,
            checks: retry.checks.map(({ type, command }) => ({ type, command })),
            on_failure: retry.onFailure,
            timeout_seconds: retry.timeoutSeconds,
            on_failure_timeout_seconds: retry.onFailureTimeoutSeconds,
          }),
    grant: (recipe.grant as Json | null) ?? undefined,
    budget: (recipe.budget as Json | null) ?? undefined,
    neverAsks: recipe.neverAsks || undefined,
    disable: recipe.isDisabled || undefined,
  })
}

/** Makes a file name from a title: `My Recipe!` becomes `my-recipe`; `taken` holds existing names. */
export function recipeFileName(title: string, taken: ReadonlySet<string> = new Set()): string {
  const kept = title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .trim()
  const base = kept.split(/\s+/).join('-') || 'untitled-recipe'
  let name = base
  for (let number = 1; taken.has(`${name}.yaml`); number++) name = `${base}-${number}`
  return `${name}.yaml`
}

type Fields = { [key: string]: Json }

function parameterFields({
  key,
  inputType,
  requirement,
  description,
  default: fallback,
  options,
}: RecipeParameter): Fields {
  return withoutNulls({
    key,
    input_type: inputType,
    requirement,
    description,
    default: fallback,
    options: options.length === 0 ? null : [...options],
  })
}

function subRecipeFields(sub: Recipe['subRecipes'][number], folder: string | undefined): Fields {
  const relative = folder === undefined ? sub.path : path.relative(folder, sub.path)
  const place = path.isAbsolute(relative) || relative.startsWith('.') ? relative : `./${relative}`
  return withoutNulls({
    name: sub.name,
    path: place,
    values: Object.keys(sub.values).length === 0 ? null : { ...sub.values },
    locked_values: sub.locked === false ? null : (sub.locked as Json),
    sequential_when_repeated: sub.sequentialWhenRepeated || null,
    description: sub.description,
  })
}

const NAMES: Readonly<Record<string, string>> = {
  availableTools: 'available_tools',
  envKeys: 'env_keys',
  timeoutSeconds: 'timeout',
  displayName: 'display_name',
}

/** Writes an extension without empty fields. A server that is only named becomes a builtin. */
function extensionFields(extension: ExtensionConfig): Fields {
  const { type, name, ...rest } = extension
  const fields = Object.entries(rest as object as { [key: string]: Json }).filter(([key, value]) => {
    if (key === 'args' || key === 'tools') return true
    // Recipes have no keys for these; `convert` reports the loss.
    if (key === 'excludedTools' || key === 'envFrom') return false
    if (value === null || value === '' || value === false) return false
    return typeof value !== 'object' || Object.keys(value).length > 0
  })
  return {
    type: type === 'named' ? 'builtin' : type,
    name,
    ...Object.fromEntries(fields.map(([key, value]) => [ownValue(NAMES, key) ?? key, value])),
  }
}

function withoutNulls(fields: { readonly [key: string]: Json | null }): Fields {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, Json] => entry[1] !== null))
}

function filled(list: readonly Json[]): Json | undefined {
  return list.length === 0 ? undefined : [...list]
}

function filledMap(fields: { readonly [key: string]: Json | null }): Json | undefined {
  const kept = withoutNulls(fields)
  return Object.keys(kept).length === 0 ? undefined : kept
}
