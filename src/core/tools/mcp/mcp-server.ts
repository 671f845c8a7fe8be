import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import { shownWords } from '../../base/secrets/command-secrets.ts'
import { withoutSecrets } from '../../base/secrets/secrets.ts'
import type { OwnerFolder } from '../../files/files.ts'
import {
  decidedWords,
  hostRequest,
  programRequest,
  type Request,
  secretRequest,
  withPayload,
} from '../../grant/request.ts'
import { showWords } from '../../grant/words.ts'
import {
  CODE,
  type OpenSource,
  type SourceOrigin,
  type SourcePlace,
  sourceMark,
  type ToolSource,
} from '../../tool/source.ts'
import {
  handedSecrets,
  missingServerSecrets,
  neededSecrets,
  secretNames,
  secretValues,
  serverVariables,
  substituteVariables,
  variableLookup,
  withoutValues,
} from './environment.ts'
import { type McpServerOptions, readServerOptions, type ServerSettings, serverHost } from './options.ts'

/**
 * Makes a source of tools from an MCP server: `sources: { github: mcpServer({ command: 'npx', args: [...], envKeys:
 * [...] }) }`. It starts before the first step of a run that needs it, and ends with the runs that share it.
 */
export function mcpServer(options: McpServerOptions): ToolSource {
  return serverOf(options, CODE)
}

/** A server that code defines, or a client such as an editor: it runs in the folder that its definition names. */
export function serverOf(options: McpServerOptions, origin: SourceOrigin): ToolSource {
  const settings = readServerOptions(options)
  return source({ settings, origin, chosen: null, mayMove: settings.cwd === null, own: null })
}

/** A server of a file: a model may have chosen the folder of its program. Else that is the folder of the owner, if it has one. */
export function serverSource(options: McpServerOptions, origin: SourceOrigin, chosen: string | null): ToolSource {
  return source({ settings: readServerOptions(options), origin, chosen, mayMove: chosen === null, own: null })
}

/** A server, who defines it, and where its program runs. */
interface ServerParts {
  readonly settings: ServerSettings
  readonly origin: SourceOrigin
  /** The folder that a model chose, which is a part of what is decided. */
  readonly chosen: string | null
  /** True where neither a model nor the application's code chose the folder. */
  readonly mayMove: boolean
  /** The folder of the owner for whom the server runs. */
  readonly own: OwnerFolder | null
}

function source(parts: ServerParts): ToolSource {
  const { settings, origin, mayMove, own } = parts
  const isMoved = mayMove && settings.command !== null
  return Object.freeze({
    about: aboutOf(own === null ? settings : { ...settings, cwd: null }, origin),
    tools: null,
    get needs() {
      return needsOf(parts)
    },
    secrets: Object.freeze(decidedNames(settings, origin)),
    origin,
    required: settings.required,
    scope: settings.scope,
    get key() {
      return own === null ? `mcp ${keyOf(settings)}` : `mcp ${keyOf(settings)} of ${own.key}`
    },
    missing: () => missingServerSecrets(settings),
    open: (place: SourcePlace) => open(settings, place, own),
    inFolder: isMoved ? (folder: OwnerFolder) => source({ ...parts, own: folder }) : undefined,
    [sourceMark]: true as const,
  })
}

/** Loads the SDK with the first server. */
async function open(settings: ServerSettings, place: SourcePlace, own: OwnerFolder | null): Promise<OpenSource> {
  const { openConnection } = await import('./connection.ts')
  return openConnection(settings, place, own)
}

/**
 * The whole command line, or the host, and each secret; everything passed along is part of what is decided. An invalid address
 * asks for no host, and cannot be reached.
 */
function needsOf(parts: ServerParts): readonly Request[] {
  const { settings, origin, own } = parts
  const handed = handedTo(settings, own)
  const place = placesOf(parts).map((request) => withPayload(request, handed))
  const names = [...neededSecrets(settings), ...handedSecrets(settings, origin)]
  // A yes to a secret holds for the place that it goes to.
  const goesTo = { ...handed, to: place.map(({ name }) => name) }
  return [...place, ...[...new Set(names)].map((name) => withPayload(secretRequest(name), goesTo))]
}

/** The program, or the host. */
function placesOf({ settings, origin, chosen: folder }: ServerParts): readonly Request[] {
  const { command, args } = settings
  if (command === null) return hostsOf(settings)
  const variables = serverVariables(settings, origin)
  return [programRequest([command, ...args], { secrets: secretValues(settings), folder, variables })]
}

function decidedNames(settings: ServerSettings, origin: SourceOrigin): string[] {
  return [...new Set([...secretNames(settings), ...handedSecrets(settings, origin)])]
}

/** A host that a secret is part of counts as one that nobody may see before the secret is allowed. */
function hostsOf(settings: ServerSettings): readonly Request[] {
  const url = settings.url ?? ''
  const { text } = substituteVariables(url, variableLookup(settings))
  const host = serverHost(text)
  if (host === undefined) return []
  return [hostRequest(text, { holdsSecret: host !== serverHost(withoutValues(url, settings)) })]
}

/** The server's settings as its definition has them; secrets by name only. */
function handedTo(settings: ServerSettings, own: OwnerFolder | null): { readonly [key: string]: Json } {
  const { command, url, headers, env, envKeys, envFrom, cwd } = settings
  const place = command === null ? { url } : { cwd: own?.key ?? cwd ?? process.cwd() }
  return { ...place, headers: { ...headers }, env: { ...env }, envFrom: { ...envFrom }, secrets: [...envKeys].sort() }
}

/** The details that a person who is asked should see; possible secrets by name only. */
function aboutOf(settings: ServerSettings, origin: SourceOrigin): Json {
  const { command, args, cwd, url, env, envFrom, headers } = settings
  const named = { env: [...Object.keys(env), ...Object.keys(envFrom)], secrets: decidedNames(settings, origin) }
  if (command === null) return { mcp: withoutSecrets(url ?? '', []), headers: Object.keys(headers), ...named }
  const [program = '', ...shown] = shownWords([command, ...args])
  return {
    mcp: showWords(shownWords(decidedWords([command, ...args], serverVariables(settings, origin)))),
    command: program,
    args: shown,
    ...(cwd === null ? {} : { cwd }),
    ...named,
  }
}

/** Servers with equal settings and equal secrets share a key. The key stays in this process. */
function keyOf({ secrets, ...settings }: ServerSettings): string {
  const values = secretNames({ secrets, ...settings }).map((name) => secrets(name) ?? null)
  const plain = toJson({ ...settings, values })
  return sha256(canonicalJson(plain.ok ? plain.value : null))
}
