"""`ContactProblem`: impulses and velocities of bodies that touch at given points with friction.

    M (v - v_free) = H p + G l,     u = H^T v + w,     G^T v + b = 0
    0 <= p_n _|_ u_n >= 0           Signorini, on velocities
    p_f maximises -u_f . p_f within (p_t/e_t)^2 + (p_o/e_o)^2 + ... <= (mu p_n)^2

The rows of a contact come together, the normal first: 2 in the plane (n, t), 3 in space (n, t, o), 4 with
torsion (n, t, o, r), 5 with rolling friction (n, t, o and two moments, which have a disc of their own,
|(p_x, p_y)| <= mu_r p_n). In Delassus form u = W p + q with W = H^T M^-1 H and q = H^T v_free + w.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import shown
from implicit_geom.process.lazy import cached_property
from implicit_geom.solvers.contact.blocks import Blocks, body_labels
from implicit_geom.solvers.contact.checked_input import ellipsoids, mass_matrix, matrix, not_negative, vector

# How problems and solutions are read and written: `fclib.files` enters its functions here, since it imports
# this module and not the other way round.
FILES: dict[str, Callable[..., Any]] = {}


class ContactProblem:
    """A frictional contact problem; arrays are copied and checked.

    M        (n, n) mass matrix, symmetric positive definite, sparse or dense; kg, kg m^2
    H        (n, d n_c) directions of the contact impulses, sparse or dense
    v_free   (n,) velocities without any impulse, m/s and rad/s
    w        (d n_c,) added to the contact velocities: gap over step, restitution; zero if left out; m/s
    mu       (n_c,) coefficients of friction, or one number
    e        (n_c, d - 1), (d - 1,) or one number: the friction ellipsoid's axes over mu; 1 if left out
    mu_r     (n_c,) rolling friction, m: for d = 5 only
    G, b     (n, m), (m,) bilateral rows G^T v + b = 0
    dim      d, where the sizes of H and mu leave it open

    A block of 2 kg that falls on the floor, under gravity for 0.01 s, and slides to the right:

    >>> problem = ContactProblem(M=2 * np.eye(2), H=np.eye(2)[::-1], v_free=(1.0, -0.0981), mu=[0.5])
    >>> problem
    <ContactProblem: 1 contacts of 2 rows, 2 velocities>
    >>> problem.W.toarray(), problem.q  # u = W p + q, the normal first
    (array([[0.5, 0. ], [0. , 0.5]]), array([-0.0981,  1.    ]))
    >>> problem.write("block.hdf5")
    >>> ContactProblem.read("block.hdf5")
    <ContactProblem: 1 contacts of 2 rows, 2 velocities>
    """

    stored: dict[str, np.ndarray] | None = None  # the arrays of the file it was read from, by path
    places: np.ndarray | None = None  # where its contacts are, of one made by `contact_problem`

    @checked_call(CallError, "ContactProblem")
    def __init__(
        self,
        *,
        M: Any,
        H: Any,
        v_free: Any,
        mu: Any,
        w: Any = None,
        e: Any = 1.0,
        mu_r: Any = None,
        G: Any = None,
        b: Any = None,
        dim: int | None = None,
    ) -> None:
        self.M = mass_matrix(M)
        n = self.M.shape[0]
        self.H = matrix("H", H)
        if self.H.shape[0] != n:
            raise SceneError(f"H has {self.H.shape[0]} rows; it needs one for each of the {n} rows of M")
        rows = self.H.shape[1]
        contacts = np.size(mu) if np.ndim(mu) else None
        if dim is None:
            dim = 3 if contacts is None else (rows // contacts if contacts else 3)
        if not isinstance(dim, Integral):
            raise SceneError(f"dim = {shown(dim)} must be a whole number: rows of a contact, 2, 3, 4 or 5")
        dim = int(dim)
        if dim not in (2, 3, 4, 5) or rows % dim:
            raise SceneError(
                f"H has {rows} columns for {contacts} contacts; each has 2, 3, 4 or 5, the normal first"
            )
        self.dim = dim
        self.contacts = rows // dim
        self.v_free = vector("v_free", v_free, n)
        self.w = vector("w", np.zeros(rows) if w is None else w, rows)
        self.mu = not_negative("mu", mu, self.contacts)
        if (mu_r is not None) != (dim == 5):
            raise SceneError("mu_r belongs to contacts of five rows, and to them alone")
        self.mu_r = None if mu_r is None else not_negative("mu_r", mu_r, self.contacts)
        self.e = ellipsoids(e, self.contacts, dim)
        self.G = sp.csc_matrix((n, 0)) if G is None else matrix("G", G)
        if self.G.shape[0] != n:
            raise SceneError(f"G has {self.G.shape[0]} rows; it needs one for each of the {n} rows of M")
        self.b = vector("b", np.zeros(self.G.shape[1]) if b is None else b, self.G.shape[1])
        _ = self.blocks  # (made at once: masses that are not positive are refused)

    def __repr__(self) -> str:
        bilateral = f", {self.G.shape[1]} bilateral rows" if self.G.shape[1] else ""
        contacts = f"{self.contacts} contacts of {self.dim} rows"
        return f"<ContactProblem: {contacts}, {self.n} velocities{bilateral}>"

    @classmethod
    def read(cls, path: Any) -> ContactProblem:
        """The problem of an HDF5 file in FCLIB's layout: global, rolling, or local.

        path   of the file

        Of a local problem, which has no masses, M is the identity and H a factor of W. SceneError, which
        names the dataset, where something is missing, not finite, or not of the right size or sign.

        >>> ContactProblem(M=np.eye(3), H=np.eye(3), v_free=(-1, 0, 0), mu=[0.3]).write("p.hdf5")
        >>> ContactProblem.read("p.hdf5").v_free
        array([-1.,  0.,  0.])
        """
        problem: ContactProblem = FILES["read"](path)
        return problem

    def write(
        self,
        path: Any,
        *,
        solution: Any = None,
        guesses: Iterable[Any] = (),
        title: str = "",
        description: str = "",
        force: bool = False,
    ) -> None:
        """Write an HDF5 file in FCLIB's layout, which Siconos and others read.

        path                 ends in .hdf5 or .h5
        solution             of this problem, to be kept beside it
        guesses              solutions, or impulses (d n_c,), to start from
        title, description   texts of the file
        force                overwrite a file that is no contact problem

        A problem that was read is written with the arrays it was read from. FCLIB has no friction ellipsoids
        (e other than 1) and no torsion (d = 4): such a problem goes to a group of our own,
        `implicit_geom_global`, which other programs do not read; `scaled` gives one that they do.

        >>> problem = ContactProblem(M=np.eye(3), H=np.eye(3), v_free=(-1, 0, 0), mu=[0.3])
        >>> problem.write("p.hdf5", title="a ball on a plane")
        """
        FILES["write"](
            self,
            path,
            solution=solution,
            guesses=guesses,
            title=title,
            description=description,
            force=force,
        )

    def scaled(self) -> ContactProblem:
        """The same problem with discs for ellipsoids: its impulses are p / e, its slip velocities e u.

        >>> H, v_free = np.eye(3), (-1.0, 2.0, 0.0)
        >>> ContactProblem(M=np.eye(3), H=H, v_free=v_free, mu=[0.3], e=(0.5, 2.0)).scaled().q
        array([-1.,  1.,  0.])
        """
        more = {"mu_r": self.mu_r, "G": self.G, "b": self.b, "dim": self.dim}
        return ContactProblem(M=self.M, H=self.H_ball, v_free=self.v_free, w=self.w_ball, mu=self.mu, **more)

    @property
    def n(self) -> int:
        """Number of velocities."""
        return int(self.M.shape[0])

    @cached_property
    def scaling(self) -> np.ndarray:
        """(d n_c,) factors that make the ellipsoid a ball: p = scaling * s, and scaling * u belongs to s."""
        out = np.ones((self.contacts, self.dim))
        out[:, 1:] = self.e
        return out.ravel()

    def ball_impulses(self, p: np.ndarray) -> np.ndarray:
        """s of the impulses p = scaling * s; zero where an axis of the ellipsoid is."""
        known = self.scaling > 0
        return np.where(known, p / np.where(known, self.scaling, 1.0), 0.0)

    @cached_property
    def H_ball(self) -> sp.csc_matrix:
        """H for the scaled impulses s."""
        return sp.csc_matrix(self.H @ sp.diags(self.scaling))

    @cached_property
    def w_ball(self) -> np.ndarray:
        """w for the scaled contact velocities."""
        return self.w * self.scaling

    @cached_property
    def coefficients(self) -> list[tuple[slice, np.ndarray]]:
        """The friction discs of a contact: which of its rows, and the radius over p_n, (n_c,)."""
        if self.mu_r is not None:
            return [(slice(1, 3), self.mu), (slice(3, 5), self.mu_r)]
        return [(slice(1, self.dim), self.mu)]

    @cached_property
    def bodies(self) -> tuple[int, np.ndarray]:
        """How many bodies (blocks of M) there are, and the body of each row of M."""
        label = body_labels(self.M, 3 if self.dim == 2 else 6)
        return (int(label[-1]) + 1 if label.size else 0), label

    @cached_property
    def blocks(self) -> Blocks:
        """The problem as dense blocks by body and contact."""
        return Blocks(self.M, self.H, self.scaling, self.dim, self.bodies[1])

    @cached_property
    def M_inverse(self) -> sp.csc_matrix:
        """M^-1, sparse, block by block."""
        inverse = sp.block_diag(list(self.blocks.inverse), format="csc") if self.n else sp.csc_matrix((0, 0))
        place = self.blocks.place
        return sp.csc_matrix(inverse[place][:, place])

    @cached_property
    def MH(self) -> sp.csc_matrix:
        """M^-1 H of the scaled problem; what the bilateral rows take away from it is in `joints`."""
        return sp.csc_matrix(self.M_inverse @ self.H_ball)

    @cached_property
    def joints(self) -> tuple[np.ndarray, np.ndarray] | None:
        """M^-1 G and (G^T M^-1 G)^+, where there are bilateral rows, redundant ones among them."""
        if not self.G.shape[1]:
            return None
        MG = (self.M_inverse @ self.G).toarray()
        return MG, np.linalg.pinv(self.G.T @ MG, rcond=1e-12, hermitian=True)

    @cached_property
    def W(self) -> sp.csc_matrix:
        """(d n_c, d n_c) the Delassus matrix H^T M^-1 H of the scaled problem, bilateral rows eliminated."""
        W = sp.csc_matrix(self.H_ball.T @ self.MH)
        if self.joints is None:
            return W
        MG, inverse = self.joints
        HMG = self.H_ball.T @ MG
        return sp.csc_matrix(W - HMG @ inverse @ HMG.T)

    @cached_property
    def q(self) -> np.ndarray:
        """(d n_c,) scaled contact velocities without contact impulses."""
        return np.asarray(self.H_ball.T @ self.velocity(np.zeros(self.H.shape[1])) + self.w_ball)

    @cached_property
    def W_blocks(self) -> np.ndarray:
        """(n_c, d, d) each contact's own block of the Delassus matrix."""
        if self.joints is None:
            return self.blocks.own
        MG, inverse = self.joints
        HMG = (self.H_ball.T @ MG).reshape(self.contacts, self.dim, MG.shape[1])
        return self.blocks.own - HMG @ inverse @ np.swapaxes(HMG, 1, 2)

    @cached_property
    def effective_mass(self) -> np.ndarray:
        """(n_c,) 1 / W_nn of each contact, kg: turns impulses into velocities in residuals."""
        return 1 / np.maximum(self.W_blocks[:, 0, 0], 1e-300)

    def velocity(self, s: np.ndarray) -> np.ndarray:
        """v for scaled impulses s, bilateral rows kept."""
        if self.joints is None:
            return self.v_free + self.blocks.pushed(s)
        v = np.asarray(self.v_free + self.MH @ s)
        MG, inverse = self.joints
        return np.asarray(v - MG @ (inverse @ (self.G.T @ v + self.b)))

    def contact_velocity(self, v: np.ndarray) -> np.ndarray:
        """u = H^T v + w, as the user's rows are."""
        return np.asarray(self.H.T @ v + self.w)
