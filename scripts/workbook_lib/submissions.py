"""Submissions: folders shaped like exercises/, or archives of them. Nothing of one is trusted."""

import hashlib
import os
import re
import stat
import tarfile
import zipfile
from collections import namedtuple

from .console import Problem
from .week import lessons

# files: {"03_online_softmax.cpp": bytes}; refused: {name or "": why}.
Submission = namedtuple("Submission", "name path files refused")
MAXIMUM_FILE = 1 << 20
MAXIMUM_MEMBERS = 2000
MAXIMUM_TOTAL = 64 << 20


def read(paths):
    """One submission a path, with names that differ."""
    found, names = [], {}
    for path in paths:
        if not os.path.exists(path):
            raise Problem("%r does not exist" % path)
        base = os.path.basename(os.path.realpath(path).rstrip("/"))
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", re.sub(r"\.(zip|tar|tgz|tar\.\w+)$", "", base)).lstrip(".") or "submission"
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name += "-%d" % names[name]
        files, refused = {}, {}
        if os.path.isdir(path):
            _read_folder(path, files, refused)
        else:
            try:
                _read_archive(path, files, refused)
            except (OSError, ValueError, RuntimeError, EOFError, KeyError, NotImplementedError, tarfile.TarError,
                    zipfile.BadZipFile) as error:
                files, refused = {}, {"": "the archive cannot be read: %s" % error}
        found.append(Submission(name, path, files, refused))
    return found


def digest(submission):
    """Of the lessons' sources alone: names and contents."""
    whole = hashlib.sha256()
    for name in sorted(submission.files):
        content = submission.files[name]
        whole.update(("%s %d\n" % (name, len(content))).encode() + content)
    return whole.hexdigest()


def _wanted():
    return [entry.stem + ".cpp" for entry in lessons()]


def _read_folder(path, files, refused):
    for name in _wanted():
        try:
            # A link would read what the grader may read and the student may not.
            handle = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        except OSError as error:
            refused[name] = "%s is a link or cannot be read (%s)" % (name, error.strerror)
            continue
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                refused[name] = "%s is no plain file" % name
            elif info.st_size > MAXIMUM_FILE:
                refused[name] = "%s holds more than %d bytes" % (name, MAXIMUM_FILE)
            else:
                files[name] = file.read(MAXIMUM_FILE)


def _read_archive(path, files, refused):
    """Reads members into memory; nothing is unpacked. One bad member refuses the whole archive."""
    wanted, total = set(_wanted()), 0
    for count, (name, kind, size, read_member) in enumerate(_members(path)):
        total += size
        parts = name.replace("\\", "/").split("/")
        problem = None
        if count >= MAXIMUM_MEMBERS:
            problem = "more than %d members" % MAXIMUM_MEMBERS
        elif name.startswith(("/", "\\")) or ".." in parts or re.match(r"[A-Za-z]:", name):
            problem = "a path that leaves the archive: %r" % name
        elif kind == "other":
            problem = "a link or a special file: %r" % name
        elif total > MAXIMUM_TOTAL:
            problem = "more than %d bytes when unpacked" % MAXIMUM_TOTAL
        elif kind == "file" and parts[-1] in wanted:
            if parts[-1] in files:
                problem = "%s twice" % parts[-1]
            elif size > MAXIMUM_FILE:
                refused[parts[-1]] = "%s holds more than %d bytes" % (parts[-1], MAXIMUM_FILE)
            else:
                files[parts[-1]] = read_member()
        if problem:
            files.clear()
            refused.clear()
            refused[""] = "the archive holds " + problem
            return


def _members(path):
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                plain = not mode or stat.S_ISREG(mode) or stat.S_ISDIR(mode) or not stat.S_IFMT(mode)
                kind = "other" if not plain else "folder" if info.is_dir() else "file"
                yield info.filename, kind, info.file_size, lambda info=info: _take(archive.open(info))
        return
    with tarfile.open(path) as archive:
        for info in archive:
            kind = "folder" if info.isdir() else "file" if info.isreg() else "other"
            yield info.name, kind, info.size, lambda info=info: _take(archive.extractfile(info))


def _take(file):
    with file:
        content = file.read(MAXIMUM_FILE + 1)
    if len(content) > MAXIMUM_FILE:  # a header may lie about the size
        raise ValueError("a member is larger than it says")
    return content
