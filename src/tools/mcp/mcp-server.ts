import { sha256 } from '../../base/hash.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import { shownWords } from '../../base/secrets/command-secrets.ts'
import { withoutSecrets } from '../../base/secrets/secrets.ts'
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
  return serverSource(options, null)
}

/** A server whose program runs in a folder that its definition did not choose. */
export function serverSource(options: McpServerOptions, folder: string | null): ToolSource {
  const settings = readServerOptions(options)
  return Object.freeze({
    about: aboutOf(settings),
    tools: null,
    get needs() {
      return needsOf(settings, folder)
    },
    required: settings.required,
    scope: settings.scope,
    get key() {
      return `mcp ${keyOf(settings)}`
    },
    missing: () => missingSecrets(settings),
    open: (place: SourcePlace) => open(settings, place),
    [sourceMark]: true as const,
  })
}

/** Loads the SDK with the first server. */
async function open(settings: ServerSettings, place: SourcePlace): Promise<OpenSource> {
  const { openConnection } = await import('./connection.ts')
  return openConnection(settings, place)
}

/**
 * The whole command line, or the host, and everything passed along. An invalid address asks for nothing, and cannot be
 * reached.
 */
function needsOf(settings: ServerSettings, folder: string | null): readonly Request[] {
  const { command, args } = settings
  const handed = handedTo(settings)
  if (command !== null) {
    const loading = envPrefix(settings.env)
    const options = { secrets: secretValues(settings), folder, before: loading.length }
    return [withPayload(programRequest([...loading, command, ...args], options), handed)]
  }
  const { text } = substituteVariables(settings.url ?? '', variableLookup(settings))
  return hostOf(text) === undefined ? [] : [withPayload(hostRequest(text), handed)]
}

/** The server's settings as its definition has them; secrets by name only. */
function handedTo({ command, url, headers, env, envKeys, envFrom, cwd }: ServerSettings): Json {
  const place = command === null ? { url } : { cwd: cwd ?? process.cwd() }
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
