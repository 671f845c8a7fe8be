import { randomBytes } from 'node:crypto'
import { ConflictError, type Json, type Store } from '../../../index.ts'

const KIND = 'key'
const ID = 'mcp'

/**
 * The key of a store that states of MCP are signed with. All processes of the store have the same, so what one has signed
 * another can check, also after a restart.
 */
export async function signingKey({ registry }: Pick<Store, 'registry'>): Promise<Uint8Array> {
  const known = await registry.get(KIND, ID)
  if (known !== undefined) return bytesOf(known.data)
  const data = randomBytes(32).toString('base64url')
  try {
    await registry.put({ kind: KIND, id: ID, owner: null, version: 1, at: Date.now(), data })
    return bytesOf(data)
  } catch (error) {
    // Another process was faster.
    if (!ConflictError.isInstance(error)) throw error
    return signingKey({ registry })
  }
}

function bytesOf(data: Json): Uint8Array {
  return Buffer.from(String(data), 'base64url')
}
