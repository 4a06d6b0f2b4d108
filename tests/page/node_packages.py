"""The npm packages of web/, as its lock file names them, kept in a build folder."""

import fcntl
import hashlib
import os
import shutil
import subprocess


def install(web, folder):
    """(node_modules, None), or (None, why not): npm may be missing, and so may its registry."""
    if not shutil.which("npm") or not shutil.which("node"):
        return None, "npm is not installed (apt-get install npm)"
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(web, "package-lock.json"), "rb") as lock:
        wanted = hashlib.sha256(lock.read()).hexdigest()
    stamp = os.path.join(folder, "installed")
    modules = os.path.join(folder, "node_modules")
    with open(os.path.join(folder, "lock"), "w", encoding="ascii") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            with open(stamp, encoding="ascii") as known:
                if known.read() == wanted:
                    return modules, None
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(web, name), folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return None, "npm ci took longer than 120 s"
        if done.returncode != 0:
            return None, "npm ci failed: " + (done.stderr.strip().splitlines() or ["no reason given"])[0]
        with open(stamp, "w", encoding="ascii") as known:
            known.write(wanted)
        return modules, None
