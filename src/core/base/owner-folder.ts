// The folder of one owner, below a folder that owners share.
//
// Owns:      the names of these folders, and which owners have none because they use the shared folder itself.
// Called by: the file domain and the memory tools; the server takes the id of the person at this machine from here.
// Must stay true:
//   - The name is a digest of the owner's id: no id leads out of the folder, and no two ids share a name, also where a disk
//     takes upper and lower case for the same.
//   - Folders lie on disks of users: the same owner has the same folder in every version.

import { sha256 } from './hash.ts'

/** The id of the person at this machine: of the token of this machine, the Unix socket, editors and MCP clients. */
const LOCAL_OWNER = 'local'

/** Whose the things are that ready-made tools keep: each owner's own, or shared by all owners. */
export type Owners = 'own' | 'shared'
export const OWNERS: readonly Owners[] = Object.freeze(['own', 'shared'])

/** The folder that holds the folders of all owners. */
const OWNERS_FOLDER = '.legate.owners'

/** False for runs without an owner and for the person at this machine: they use what is there for the whole application. */
export function hasOwnFolder(owner: string | null): owner is string {
  return owner !== null && owner !== LOCAL_OWNER
}

/** The names on the way from the shared folder to the folder of one owner. */
export function ownerFolder(owner: string): readonly string[] {
  return [OWNERS_FOLDER, sha256(`owner ${owner}`)]
}

/** True for each name that some disk takes for the folder of all owners. */
export function isOwnersFolder(name: string): boolean {
  if (name.length === OWNERS_FOLDER.length && name.toLowerCase() === OWNERS_FOLDER) return true
  return NOT_ASCII.test(name) && name.normalize('NFKC').toLowerCase() === OWNERS_FOLDER
}

const NOT_ASCII = /[^ -~]/
