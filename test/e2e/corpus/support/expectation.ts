import path from 'node:path'
import { PACKAGES, packageOf } from '../programs/packages.mjs'
import type { Definition, Extension, Parameter, Schema, SubRecipe } from './definition.ts'
import { readRecipe } from './definition.ts'
import { ASKED, type Call, DEVELOPER_TOOLS, developerCalls, MEMORY, REFUSED, TODO } from './tools.ts'
import { agentTools } from './words.ts'

/** What a run of a file is to be like, judged by what the file says as whoever wrote it means it. */
export interface Expectation {
  /** What the model calls, answer by answer, and what it is to get. */
  readonly steps: readonly (readonly Call[])[]
  /** What the file names and there is nothing of here, and what is wrong with it: the run says these words. */
  readonly told: readonly string[]
  /** How often a person is asked. */
  readonly asked: number
  /** Secrets that its servers need. */
  readonly secrets: readonly string[]
  /** `--param` words. */
  readonly parameters: readonly string[]
  /** Its output, where it has a schema; else it answers in words. */
  readonly output: object | null
}

export function expectationOf(definition: Definition): Expectation {
  return definition.dialect === 'recipe' ? recipeExpectation(definition) : agentExpectation(definition)
}

function agentExpectation(definition: Definition): Expectation {
  const { said, trouble } = definition
  const { works, either, missing, commands } = agentTools(definition)
  const servers = Object.entries(said.mcp_servers ?? {})
  const calls = developerCalls(works).filter(({ name }) => !either.has(name))
  return {
    steps: [calls, ...(commands.length === 0 ? [] : [commands]), [TODO, unknownServer]],
    // Nothing is reached from here.
    told: [
      ...missing,
      ...servers.flatMap(([name, { url }]) => [absent(name), `ENOTFOUND ${new URL(url).host}`]),
      ...(trouble === null ? [] : [trouble]),
    ],
    // Commands that the file itself names run without a question.
    asked: askedIn(calls) + servers.length,
    secrets: [],
    parameters: [],
    output: null,
  }
}

const unknownServer: Call = { name: 'nobody__knows', input: {}, gives: REFUSED }

function recipeExpectation({ file, said }: Definition): Expectation {
  const { parameters = [], extensions = [{ type: 'builtin', name: 'developer' }], sub_recipes = [], response } = said
  const names = new Set(extensions.map(({ name }) => name))
  const servers = extensions.filter(({ type }) => type === 'stdio')
  const memory = names.has('memory') ? MEMORY : []
  const developer = developerCalls(new Set(names.has('developer') ? DEVELOPER_TOOLS : []))
  const children = sub_recipes.map((sub) => childCall(path.dirname(file), sub))
  const output = response === undefined ? null : (sampleOf(response.json_schema) as object)
  const dead = servers.filter(isDead)
  return {
    steps: [
      [...developer, TODO, ...(names.has('memory') ? [] : [{ name: 'memory_recall', input: {}, gives: REFUSED }])],
      ...memory,
      ...servers.filter((one) => !isDead(one)).map(serverCalls),
      children,
    ].filter((step) => step.length > 0),
    told: dead.map(({ name }) => absent(name)),
    asked: askedIn([...developer, ...memory.flat()]) + servers.length + children.length,
    secrets: servers.flatMap(({ env_keys = [] }) => env_keys),
    parameters: parametersFor(parameters, servers),
    output,
  }
}

function askedIn(calls: readonly Call[]): number {
  return calls.filter(({ name, gives }) => ASKED.has(name) && gives !== REFUSED).length
}

function absent(name: string): string {
  return `The tools of "${name}" are not available: it did not start: `
}

/** One that shows a folder which is not there does not start. */
function isDead({ args = [] }: Extension): boolean {
  return packageOf(args) === FILESYSTEM && !args.some((word) => word.includes('{{'))
}

const FILESYSTEM = '@modelcontextprotocol/server-filesystem'

function serverCalls({ name, args = [], env_keys = [] }: Extension): readonly Call[] {
  const server = packageOf(args)
  if (server === FILESYSTEM) {
    return [{ name: `${name}__list_allowed_directories`, input: {}, gives: /Allowed directories:\n.*legate-cli-/ }]
  }
  const knows = env_keys.length === 0 ? 'no secret' : env_keys.join(' ')
  return (PACKAGES[server] ?? []).map((tool) => ({
    name: `${name}__${tool}`,
    input: { query: 'corpus' },
    gives: new RegExp(`${tool} of .* heard corpus, knows ${knows}`),
  }))
}

/** What a child says at its end: see provider.ts. */
export const CHILD_ANSWER = 'The child is done: '

function childCall(folder: string, { name, path: file, values = {} }: SubRecipe): Call {
  const { parameters = [] } = readRecipe(path.join(folder, file))
  const open = parameters.filter((one) => isOpen(one) && !Object.hasOwn(values, one.key))
  const given = Object.fromEntries(open.map((one) => [one.key, valueFor(one)]))
  return {
    name: 'subagent',
    input: { subrecipe: name, parameters: given },
    gives: new RegExp(`${CHILD_ANSWER}.*the child works`, 's'),
  }
}

/** Those that need a value, and those that choose the folder of a server: what is the default is not there. */
function parametersFor(parameters: readonly Parameter[], servers: readonly Extension[]): readonly string[] {
  const words = servers.flatMap(({ args = [] }) => args).join(' ')
  return parameters
    .filter((one) => isOpen(one) || new RegExp(`\\{\\{ *${one.key} *\\}\\}`).test(words))
    .map((one) => `${one.key}=${valueFor(one)}`)
}

function isOpen({ default: fallback }: Parameter): boolean {
  return fallback === undefined
}

function valueFor({ key, input_type, options }: Parameter): string {
  const byType: Readonly<Record<string, string>> = {
    number: '7',
    boolean: 'true',
    date: '2026-01-02',
    file: 'notes.txt',
    select: options?.[0] ?? '',
  }
  return byType[input_type] ?? (/path|dir/.test(key) ? '.' : 'sample')
}

/** Something that fits. */
function sampleOf({ type, properties = {}, items, enum: choices }: Schema): unknown {
  if (choices !== undefined) return choices[0]
  if (type === 'object') return Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, sampleOf(one)]))
  if (type === 'array') return items === undefined ? [] : [sampleOf(items)]
  return type === 'integer' || type === 'number' ? 7 : type === 'boolean' ? true : 'sample'
}
