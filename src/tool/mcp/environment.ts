import { isDisallowedVariable, startEnvironment } from '../environment.ts'
import type { ServerSettings } from './options.ts'

/** What a server's process gets: what it needs to start, what its definition names, and its secrets. */
export function serverEnvironment(
  env: Readonly<Record<string, string>>,
  secrets: ReadonlyMap<string, string>,
): Record<string, string> {
  const own = Object.entries(env).filter(([name]) => !isDisallowedVariable(name))
  const secret = [...secrets].filter(([name]) => !isDisallowedVariable(name))
  return Object.fromEntries([...Object.entries(startEnvironment()), ...own, ...secret])
}

/** The variables that a server's address and headers may name: those that were said for it, and no others of ours. */
export function knownTo({ env, envKeys, secrets }: ServerSettings): (name: string) => string | undefined {
  return (name) => (Object.hasOwn(env, name) ? env[name] : envKeys.includes(name) ? secrets(name) : undefined)
}

/** The text with each `${NAME}` as it is known, and the names that are not. */
export function substituted(
  text: string,
  lookUp: (name: string) => string | undefined,
): { readonly text: string; readonly missing: readonly string[] } {
  const missing: string[] = []
  const full = text.replace(/\$\{(\w+)\}/g, (whole, name: string) => {
    const value = lookUp(name)
    if (value === undefined) missing.push(name)
    return value ?? whole
  })
  return { text: full, missing }
}
