import { within } from '../../base/abort.ts'
import { passwordsIn } from '../../base/secrets/secrets.ts'
import { isSecretName } from '../../base/secrets/shapes.ts'
import { lastGoodConfig } from '../config.ts'
import { errorField } from './provider-error.ts'

/** A shorter value may be an ordinary word, even if its variable is named like a secret. */
const SHORTEST = 8
const HEADERS_MS = 500

/**
 * The secrets that a provider may repeat in an error: those sent to it, as far as they can be reached, and those of the
 * environment.
 */
export async function knownSecrets(model: unknown, error: unknown): Promise<string[]> {
  return [
    ...(await sentSecrets(model)),
    ...passwordsIn(String(errorField(error, 'url') ?? '')),
    ...environmentSecrets(),
  ]
}

/** Reads the headers that models of the AI SDK keep in `config`, or the function there that returns them. */
export async function sentSecrets(model: unknown): Promise<string[]> {
  const config = errorField(model, 'config')
  const headers = await soon(() => {
    const given = errorField(config, 'headers')
    return typeof given === 'function' ? given.call(config) : given
  })
  if (typeof headers !== 'object' || headers === null) return []
  return Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' && isSecretName(name) ? credentialsOf(value) : [],
  )
}

/** Undefined for a function that fails or takes long, because an error is waiting to be reported. */
async function soon(get: () => unknown): Promise<unknown> {
  try {
    return await within(get(), HEADERS_MS)
  } catch {
    return undefined
  }
}

/** `Bearer abc`, `Basic dXNlcjpwYXNz` and plain values. */
function credentialsOf(value: string): string[] {
  const [, scheme = '', own = value] = /^(\w+)\s+(.+)$/.exec(value.trim()) ?? []
  if (scheme.toLowerCase() !== 'basic') return [own]
  const decoded = Buffer.from(own, 'base64').toString()
  return [own, decoded, decoded.slice(decoded.indexOf(':') + 1)]
}

/** Values of variables whose names look like secrets, or that hold a provider's key or an address with a password. */
export function environmentSecrets(): string[] {
  const named = new Set([...(lastGoodConfig()?.providers.values() ?? [])].map(({ keyEnv }) => keyEnv))
  return Object.entries(process.env).flatMap(([name, value = '']) => {
    const secret = value.trim()
    if (named.has(name) || (isSecretName(name) && secret.length >= SHORTEST)) return [secret]
    return passwordsIn(secret).some((password) => password !== '') ? [secret] : []
  })
}
