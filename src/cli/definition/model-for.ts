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
    const name = named?.trim() ?? (definition === undefined ? null : modelOf(definition))
    return (await findModel(name ?? undefined)).id
  } catch (error) {
    const known = refused(error)
    const message = known instanceof Error ? known.message : String(known)
    const isOfFile = named === undefined && (definition?.model ?? definition?.provider) != null
    throw new CliError(isOfFile ? `${message} ${INSTEAD}` : message, EXIT.usage, { namesHelp: false })
  }
}

/** A file need not be changed to be tried. */
const INSTEAD = 'Or use another model than the file names: --model provider/model.'
