import { messageOf } from '../error.ts'

/**
 * Loads a package that a bundle cannot hold, because it has native parts or is loaded by its name. Throws what to install
 * where it is not there; `instead` is a sentence about another way.
 */
export function loadBeside(load: NodeJS.Require, name: string, instead = ''): unknown {
  try {
    return load(name)
  } catch (error) {
    if (Reflect.get(Object(error), 'code') !== 'MODULE_NOT_FOUND') throw error
    const [why = ''] = messageOf(error).split(/\s*Require stack/)
    const message = `${why}. Install the package with \`npm install ${name}\`; a bundle cannot hold it, and finds it beside itself. ${instead}`
    throw new Error(message.trim(), { cause: error })
  }
}
