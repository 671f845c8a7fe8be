import { findModel } from '../../index.ts'
import { type AgentFile, modelOf } from '../../recipe/index.ts'
import { CliError, EXIT } from '../command.ts'
import { refused } from './refused.ts'

/**
 * The name of the model that a run begins with: `named` on the command line, else the file's, else the user's own. Where
 * there is none, or no key for it, it is told before anything is recorded.
 */
export async function modelFor(definition: AgentFile | undefined, named: string | undefined): Promise<string> {
  try {
    const name = named?.trim() ?? (definition === undefined ? null : modelOf(definition, new Map()))
    return (await findModel(name ?? undefined)).id
  } catch (error) {
    const known = refused(error)
    if (known !== error) throw known
    const message = error instanceof Error ? error.message : String(error)
    throw new CliError(message, EXIT.usage, { namesHelp: false })
  }
}
