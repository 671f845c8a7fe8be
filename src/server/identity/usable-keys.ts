import type { JWK } from 'jose'
import { messageOf } from '../../core/base/error.ts'

type Jose = typeof import('jose')

/** The keys of a provider, without those that the package refuses. */
export interface UsableKeys {
  readonly keys: readonly JWK[]
  /** Those that were left out, each with the reason. */
  readonly leftOut: readonly string[]
}

/**
 * Asks the package for each key whether a signature can be checked with it by one of these algorithms. A key that is too weak, not
 * whole or private would fail at every token that names it, and a set with an entry that is no key would fail as a whole. Keys for
 * other algorithms are left out in silence: no token that is taken names one.
 */
export async function usableKeys(
  jose: Jose,
  found: readonly unknown[],
  algorithms: readonly string[],
): Promise<UsableKeys> {
  const keys: JWK[] = []
  const leftOut: string[] = []
  for (const key of found) {
    const why = await faultOf(jose, key, algorithms)
    if (why === null) keys.push(key as JWK)
    else if (why !== '') leftOut.push(`${String(Reflect.get(Object(key), 'kid') ?? 'one without "kid"')}: ${why}`)
  }
  return { keys, leftOut }
}

/** Why a key cannot be used; null where it can, empty where it is for other algorithms. */
async function faultOf(jose: Jose, key: unknown, algorithms: readonly string[]): Promise<string | null> {
  for (const alg of algorithms) {
    try {
      await jose.compactVerify(probeOf(alg), jose.createLocalJWKSet({ keys: [key as JWK] }))
    } catch (error) {
      if (error instanceof jose.errors.JWSSignatureVerificationFailed) return null
      if (!(error instanceof jose.errors.JWKSNoMatchingKey)) return messageOf(error)
    }
  }
  return ''
}

/** A token with a signature that nobody made. */
function probeOf(alg: string): string {
  const head = Buffer.from(JSON.stringify({ alg })).toString('base64url')
  return `${head}.e30.${Buffer.alloc(SIGNATURE_BYTES).toString('base64url')}`
}

const SIGNATURE_BYTES = 64
