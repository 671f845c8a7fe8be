import { type AnyAgent, missingSecrets } from '../../index.ts'
import { canAsk } from '../terminal/ask-line.ts'
import { askSecret } from '../terminal/ask-secret.ts'
import { oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'

/**
 * Secrets that extensions need and that are not in the environment: the person at the terminal is asked for them, for this
 * process only; elsewhere it is told before the run. They are never stored.
 */
export async function provideSecrets(agent: AnyAgent, env: NodeJS.ProcessEnv): Promise<void> {
  for (const { key, source } of missingSecrets(agent)) {
    const value = canAsk()
      ? await askSecret(`${oneLine(key)}, for ${oneLine(source)} (not shown; Enter for none): `)
      : ''
    if (value === '') note(`warning: ${oneLine(key)} is not set, and the extension ${oneLine(source)} may need it.`)
    else env[key] = value
  }
}
