import { secretsInCommand } from '../../base/command-secrets.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { knownTo, secretValues, substituted } from './environment.ts'
import type { ServerSettings } from './options.ts'

/** All that no text of a server may show. */
export function secretsOf(settings: ServerSettings): string[] {
  return [...secretValues(settings), ...namedSecrets(settings)]
}

/** The values in a definition that are secret by their names: of variables, headers, options and parts of the address. */
function namedSecrets(settings: ServerSettings): string[] {
  const { headers, env, command, args, url } = settings
  const full = (text: string) => substituted(text, knownTo(settings)).text
  const sent = Object.entries(headers).map(([name, value]) => [name, full(value)] as const)
  const address = full(url ?? '')
  const asked = URL.canParse(address) ? [...new URL(address).searchParams] : []
  return [
    ...[...sent, ...Object.entries(env), ...asked].flatMap(([name, value]) =>
      isSecretName(name) ? partsOf(value) : [],
    ),
    ...secretsInCommand([command ?? '', ...args, address]),
  ]
}

/** A value, or what stands behind a word such as Bearer. A variable that has no value is only a name. */
function partsOf(value: string): string[] {
  const own = value.replace(/^(?:Bearer|Basic|Token)\s+/i, '')
  return own.includes('${') ? [] : [own]
}
