import type { CheckedSchema, JsonSchema, Validation } from '../base/schema/schema.ts'
import { factsOf, markFacts, markUse, type Tool, useOf } from '../tool/tool.ts'

export const WORKSPACE = '/workspace'
const KEYS = ['path', 'paths', 'cwd']

/** Makes a tool accept paths relative to the workspace too. */
export function withWorkspacePaths(tool: Tool): Tool {
  const made = Object.freeze({ ...tool, input: workspaceSchema(tool.input) })
  return markFacts(markUse(made, useOf(tool)), factsOf(tool))
}

/** Reads a path as models write it in a folder: a relative one is below the workspace. */
export function workspacePath(given: string): string {
  if (given.startsWith('/')) return given
  const bare = given.replace(/^(?:\.\/)+/, '')
  return bare === '' || bare === '.' ? WORKSPACE : `${WORKSPACE}/${bare}`
}

/** Completes the paths in its values, so that the path that is decided, shown and opened is one and the same. */
function workspaceSchema(inner: CheckedSchema): CheckedSchema {
  const jsonSchema = described(inner.jsonSchema)
  return {
    jsonSchema,
    validate: (value) => {
      const checked = inner.validate(value)
      return checked instanceof Promise ? checked.then(placed) : placed(checked)
    },
    prepare: () => inner.prepare(),
  }
}

function placed(checked: Validation): Validation {
  if (!checked.ok || typeof checked.value !== 'object' || checked.value === null) return checked
  const entries = Object.entries(checked.value).map(([key, value]) => [key, KEYS.includes(key) ? place(value) : value])
  return { ok: true, value: Object.fromEntries(entries) }
}

function place(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(place)
  return typeof value === 'string' ? workspacePath(value) : value
}

const DESCRIPTION = 'Relative to the workspace, or absolute below /workspace/'

function described(schema: JsonSchema): JsonSchema {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>).map(
    ([key, property]) => {
      if (!KEYS.includes(key)) return [key, property]
      const items = property['items'] as JsonSchema | undefined
      if (items !== undefined) return [key, { ...property, items: { ...items, description: DESCRIPTION } }]
      return [key, { ...property, description: DESCRIPTION }]
    },
  )
  return { ...schema, properties: Object.fromEntries(properties) }
}
