import { fingerprint, secretsInCommand } from '../../base/secrets/command-secrets.ts'
import { isSecretName } from '../../base/secrets/shapes.ts'
import type { ProgramVariable, Request } from '../../grant/request.ts'
import { isDisallowedVariable, isLoadingVariable, programVariables, startEnvironment } from '../../tool/environment.ts'
import type { SourceOrigin } from '../../tool/source.ts'
import { type ServerSettings, serverHost } from './options.ts'

/**
 * The environment of a server's process: variables it needs to start, and its secrets. Those that its definition sets are part
 * of the decided program.
 */
export function serverEnvironment(
  settings: ServerSettings,
  secrets: ReadonlyMap<string, string>,
): Record<string, string> {
  const dropped = new Set(droppedVariables(settings))
  const secret = [...secrets].filter(([name]) => !dropped.has(name))
  return Object.fromEntries([...Object.entries(startEnvironment()), ...secret])
}

/** The settings of a server that gets no other secrets than those that were decided (I11). */
export function withDecided(settings: ServerSettings, decided: readonly Request[]): ServerSettings {
  const names = new Set(decided.flatMap(({ domain, name }) => (domain === 'secret' ? [name] : [])))
  return { ...settings, secrets: (name) => (names.has(name) ? settings.secrets(name) : undefined) }
}

/**
 * The variables that may decide what is loaded, and whose values nobody could see. One of `envKeys` has the value that its user
 * gave it; one of `envFrom` has a value that the definition made.
 */
export function droppedVariables({ envKeys, envFrom }: ServerSettings): readonly string[] {
  return [...envKeys.filter(isDisallowedVariable), ...Object.keys(envFrom).filter(isLoadingVariable)]
}

/** Its secrets by the server's own names. Leaves out those without a value. */
export function secretVariables(settings: ServerSettings): ReadonlyMap<string, string> {
  const { envKeys, envFrom } = settings
  const keys = envKeys.flatMap((name) => entry(name, givenFor(settings, name)))
  const made = Object.entries(envFrom).flatMap(([name, text]) => {
    const { text: value, missing } = substituteVariables(text, (from) => givenFor(settings, from))
    return entry(name, missing.length === 0 ? value : undefined)
  })
  return new Map([...keys, ...made])
}

/** The values that nobody may see. Variables that every server gets, such as HOME, are no secrets. */
export function secretValues(settings: ServerSettings): string[] {
  const known = startEnvironment()
  return secretNames(settings).flatMap((name) => {
    const value = givenFor(settings, name)
    return value === undefined || known[name] === value ? [] : [value]
  })
}

/** The names of all secrets that it gets, under whatever name. */
export function secretNames({ envKeys, envFrom }: ServerSettings): string[] {
  return [...new Set([...envKeys, ...Object.values(envFrom).flatMap(variablesIn)])]
}

/** The names of secrets without a value and without a default. */
export function missingServerSecrets(settings: ServerSettings): string[] {
  const optional = optionalSecrets(settings)
  return secretNames(settings).filter((name) => givenFor(settings, name) === undefined && !optional.has(name))
}

/** The names of secrets to decide: all but those for which a default stands. */
export function neededSecrets(settings: ServerSettings): string[] {
  const optional = optionalSecrets(settings)
  return secretNames(settings).filter((name) => !optional.has(name) || givenFor(settings, name) !== undefined)
}

function optionalSecrets({ url, headers, envFrom }: ServerSettings): ReadonlySet<string> {
  return new Set([url ?? '', ...Object.values(headers), ...Object.values(envFrom)].flatMap(optionalIn))
}

/** The names under which a client hands over values that are named like secrets. */
export function handedSecrets({ env, headers }: ServerSettings, { by }: SourceOrigin): string[] {
  return by === 'client' ? [...Object.keys(env), ...Object.keys(headers)].filter(isSecretName) : []
}

/**
 * The variables in the command line: those that the definition gives a value. One that is a secret of this process and nothing
 * else is decided as that secret. Code builds variables from secrets without changing its command line.
 */
export function serverVariables(
  { env, envFrom }: Pick<ServerSettings, 'env' | 'envFrom'>,
  { by }: Pick<SourceOrigin, 'by'>,
): ProgramVariable[] {
  const made = by === 'code' ? [] : Object.entries(envFrom).filter(([, text]) => !/^\$\{\w+\}$/.test(text))
  return [...programVariables(env), ...made.map(filledVariable)]
}

/** A default may be a secret itself. */
function filledVariable([name, text]: readonly [name: string, text: string]): ProgramVariable {
  const isHidden = isSecretName(name) && optionalIn(text).length > 0
  return { name, value: isHidden ? fingerprint(text) : text, kind: 'filled' }
}

/** The address with its variables, but with a word in place of each secret. */
export function withoutValues(url: string, settings: ServerSettings): string {
  const lookUp = variableLookup(settings)
  const shown = (name: string) => (lookUp(name) === undefined ? undefined : 'secret')
  return substituteVariables(url, (name) => (Object.hasOwn(settings.env, name) ? settings.env[name] : shown(name))).text
}

/** Looks up the variables that a server's address and headers may name: only those that were set for the server. */
export function variableLookup(settings: ServerSettings): (name: string) => string | undefined {
  const { env, envFrom, envKeys } = settings
  return (name) => {
    if (Object.hasOwn(env, name)) return env[name]
    if (Object.hasOwn(envFrom, name)) return secretVariables(settings).get(name)
    return envKeys.includes(name) ? givenFor(settings, name) : undefined
  }
}

/** Replaces each known `${NAME}` in the text, and lists the unknown names. */
export function substituteVariables(
  text: string,
  lookUp: (name: string) => string | undefined,
): { readonly text: string; readonly missing: readonly string[] } {
  const missing: string[] = []
  const full = text.replace(VARIABLE, (whole, name: string, other: string | undefined) => {
    const value = lookUp(name) ?? other
    if (value === undefined) missing.push(name)
    return value ?? whole
  })
  return { text: full, missing }
}

/** The names of the variables in a text. */
export function variablesIn(text: string): string[] {
  return [...text.matchAll(VARIABLE)].map(([, name = '']) => name)
}

/** `${NAME}`, or `${NAME:-default}`. */
const VARIABLE = /\$\{(\w+)(?::-([^{}]*))?\}/g

function optionalIn(text: string): string[] {
  return [...text.matchAll(VARIABLE)].flatMap(([, name = '', other]) => (other === undefined ? [] : [name]))
}

/** An empty value counts as none, and so does what is not a text: the environment has methods. */
function givenFor({ secrets }: ServerSettings, name: string): string | undefined {
  const value: unknown = secrets(name)
  return typeof value === 'string' && value !== '' ? value : undefined
}

function entry(name: string, value: string | undefined): (readonly [string, string])[] {
  return value === undefined ? [] : [[name, value]]
}

/** All secrets that no text of a server may show. */
export function serverSecrets(settings: ServerSettings): string[] {
  return [...secretValues(settings), ...namedSecrets(settings)]
}

/**
 * The values in a definition whose names mark them as secret: of variables, headers, options and parts of the address.
 */
function namedSecrets(settings: ServerSettings): string[] {
  const { headers, env, command, args, url } = settings
  const full = (text: string) => substituteVariables(text, variableLookup(settings)).text
  const sent = Object.entries(headers).map(([name, value]) => [name, full(value)] as const)
  const address = full(url ?? '')
  const asked = URL.canParse(address) ? [...new URL(address).searchParams] : []
  const host = serverHost(address)
  return [
    // An address has its host in lower case, and so have errors about it.
    ...(host === undefined || host === serverHost(withoutValues(url ?? '', settings)) ? [] : [host]),
    ...[...sent, ...Object.entries(env), ...asked].flatMap(([name, value]) =>
      isSecretName(name) ? partsOf(value) : [],
    ),
    ...secretsInCommand([command ?? '', ...args, address]),
  ]
}

/** A value, or the part behind a word such as Bearer. A variable without a value is only a name. */
function partsOf(value: string): string[] {
  const own = value.replace(/^(?:Bearer|Basic|Token)\s+/i, '')
  return own.includes('${') ? [] : [own]
}
