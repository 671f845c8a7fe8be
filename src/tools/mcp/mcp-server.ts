import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import { shownWords } from '../../base/secrets/command-secrets.ts'
import { withoutSecrets } from '../../base/secrets/secrets.ts'
import type { OwnerFolder } from '../../files/files.ts'
import { hostRequest, programRequest, type Request, withPayload } from '../../grant/request.ts'
import { showWords } from '../../grant/words.ts'
import { envPrefix } from '../../tool/environment.ts'
import { type OpenSource, type SourcePlace, sourceMark, type ToolSource } from '../../tool/source.ts'
import { missingSecrets, secretNames, secretValues, substituteVariables, variableLookup } from './environment.ts'
import { hostOf, type McpServerOptions, readServerOptions, type ServerSettings } from './options.ts'

/**
 * Makes a source of tools from an MCP server: `sources: { github: mcpServer({ command: 'npx', args: [...], envKeys:
 * [...] }) }`. It starts before the first step of a run that needs it, and ends with the runs that share it.
 */
export function mcpServer(options: McpServerOptions): ToolSource {
  const settings = readServerOptions(options)
  return source(settings, { chosen: null, mayMove: settings.cwd === null, own: null })
}

/** A server of a file: a model may have chosen the folder of its program. Else that is the folder of the owner, if it has one. */
export function serverSource(options: McpServerOptions, chosen: string | null): ToolSource {
  return source(readServerOptions(options), { chosen, mayMove: chosen === null, own: null })
}

/** Where the program of a server runs. */
interface Folders {
  /** The folder that a model chose, which is a part of what is decided. */
  readonly chosen: string | null
  /** True where neither a model nor the application's code chose the folder. */
  readonly mayMove: boolean
  /** The folder of the owner for whom the server runs. */
  readonly own: OwnerFolder | null
}

function source(settings: ServerSettings, folders: Folders): ToolSource {
  const { chosen, mayMove, own } = folders
  const isMoved = mayMove && settings.command !== null
  return Object.freeze({
    about: aboutOf(own === null ? settings : { ...settings, cwd: null }),
    tools: null,
    get needs() {
      return needsOf(settings, { chosen, own })
    },
    required: settings.required,
    scope: settings.scope,
    get key() {
      return own === null ? `mcp ${keyOf(settings)}` : `mcp ${keyOf(settings)} of ${own.key}`
    },
    missing: () => missingSecrets(settings),
    open: (place: SourcePlace) => open(settings, place, own),
    inFolder: isMoved ? (folder: OwnerFolder) => source(settings, { ...folders, own: folder }) : undefined,
    [sourceMark]: true as const,
  })
}

/** Loads the SDK with the first server. */
async function open(settings: ServerSettings, place: SourcePlace, own: OwnerFolder | null): Promise<OpenSource> {
  const { openConnection } = await import('./connection.ts')
  return openConnection(settings, place, own)
}

/**
 * The whole command line, or the host, and everything passed along. An invalid address asks for nothing, and cannot be
 * reached.
 */
function needsOf(settings: ServerSettings, { chosen, own }: Omit<Folders, 'mayMove'>): readonly Request[] {
  const { command, args } = settings
  const handed = handedTo(settings, own)
  if (command !== null) {
    const loading = envPrefix(settings.env)
    const options = { secrets: secretValues(settings), folder: chosen, before: loading.length }
    return [withPayload(programRequest([...loading, command, ...args], options), handed)]
  }
  const { text } = substituteVariables(settings.url ?? '', variableLookup(settings))
  return hostOf(text) === undefined ? [] : [withPayload(hostRequest(text), handed)]
}

/** The server's settings as its definition has them; secrets by name only. */
function handedTo(settings: ServerSettings, own: OwnerFolder | null): Json {
  const { command, url, headers, env, envKeys, envFrom, cwd } = settings
  const place = command === null ? { url } : { cwd: own?.key ?? cwd ?? process.cwd() }
  return { ...place, headers: { ...headers }, env: { ...env }, envFrom: { ...envFrom }, secrets: [...envKeys].sort() }
}

/** The details that a person who is asked should see; possible secrets by name only. */
function aboutOf(settings: ServerSettings): Json {
  const { command, args, cwd, url, env, envFrom, headers } = settings
  const named = { env: [...Object.keys(env), ...Object.keys(envFrom)], secrets: secretNames(settings) }
  if (command === null) return { mcp: withoutSecrets(url ?? '', []), headers: Object.keys(headers), ...named }
  const [program = '', ...shown] = shownWords([command, ...args])
  return {
    mcp: showWords(shownWords([...envPrefix(env), command, ...args])),
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
