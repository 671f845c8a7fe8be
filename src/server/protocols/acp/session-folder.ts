/**
 * The attribute of every run of a session that names the folder of its editor. Processes that share a store leave a session to
 * those that work in its folder.
 */
export const SESSION_FOLDER = 'legate.folder'
